import type { Metadata, ServerInterceptor } from '@grpc/grpc-js'
import type { ResolvedCallOptions } from '@timebudget/core/server'
import { codecs } from '@timebudget/core/wire'

type ServerCall = Parameters<ServerInterceptor>[1]

/** The text of one key, its values joined as HTTP does. */
export function textOf(metadata: Metadata | null | undefined, key: string): string | undefined {
  const values = metadata?.get(key).filter((value) => typeof value === 'string') ?? []
  return values.length === 0 ? undefined : values.join(', ')
}

/** The headers of a call that say how much time it has, and who sent it. */
export function arrivalOf(
  call: ServerCall,
  metadata: Metadata,
  { accept, clock }: Pick<ResolvedCallOptions, 'accept' | 'clock'>,
): {
  readonly headers: Record<string, string | undefined>
  readonly socket: { readonly remoteAddress: string | undefined }
} {
  const headers: Record<string, string | undefined> = {}
  for (const name of accept) headers[codecs[name].header] = textOf(metadata, codecs[name].header)
  headers['grpc-timeout'] = grpcTimeoutOf(call, clock.epoch())
  const peer = call.getPeer()
  // without the port, which differs for each connection
  const address = peer.includes(':') ? peer.slice(0, peer.lastIndexOf(':')) : peer
  return { headers, socket: { remoteAddress: peer === 'unknown' ? undefined : address } }
}

/** More than this in the past is no time that has passed, but one that grpc-js could not hold in 32 bits. */
const longestDelay = 60_000

/** `grpc-timeout` as it was: grpc-js removes the header and keeps the moment it makes of it. */
function grpcTimeoutOf(call: ServerCall, now: number): string | undefined {
  const deadline = Number(call.getDeadline())
  if (deadline === Infinity) return undefined
  const left = deadline - now
  if (left < -longestDelay) return codecs['grpc-timeout'].format(Number.MAX_VALUE)
  return left > 0 ? codecs['grpc-timeout'].format(left) : '0m'
}
