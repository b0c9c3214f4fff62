import { valuesOf } from './pushback.ts'
import { hasMembers, type Unknowns } from './retry-causes.ts'
import type { Sending } from './retry-network.ts'

const deadlineExceeded = 4
const resourceExhausted = 8
const unavailable = 14

/** How grpc-js says that there was no connection, and so no request. */
const withoutConnection = /No connection established|^Name resolution failed/

/** What a gRPC or Connect status says: to be retried, sent or not; `final`; `undefined` for what is no such error. */
export function grpcFailureOf(link: Unknowns): Sending | 'final' | undefined {
  const { code, metadata, details } = link
  if (typeof code !== 'number' || !hasMembers(metadata)) return undefined
  switch (code) {
    case unavailable:
      return typeof details === 'string' && withoutConnection.test(details) ? 'unsent' : 'sent'
    case deadlineExceeded:
      return 'sent'
    case resourceExhausted:
      // out of quota for good, unless the server says when to come again
      return valuesOf(metadata, 'grpc-retry-pushback-ms').length > 0 ? 'sent' : 'final'
    default:
      return 'final'
  }
}
