import { describe } from 'vitest'
import type { ClientUnderTest } from './contract/client-under-test.ts'
import { endingsContract } from './contract/endings.ts'
import { failuresContract } from './contract/failures.ts'
import { headersContract } from './contract/headers.ts'
import { anyHttpClient } from './contract/http-bench.ts'
import { peersContract } from './contract/peers.ts'
import { everyClientContract } from './every-client/contract.ts'

export type {
  Answer,
  Call,
  Caller,
  ClientUnderTest,
  ContractOptions,
  GovernedClient,
} from './contract/client-under-test.ts'

/** What every client of HTTP does, whatever library is below it. */
export function clientContract(client: ClientUnderTest): void {
  everyClientContract(anyHttpClient(client))
  describe(client.name, () => {
    describe('the deadline on the wire', () => {
      headersContract(client)
    })
    describe('the end of a call', () => {
      endingsContract(client)
    })
    describe("an upstream's faults", () => {
      failuresContract(client)
    })
    describe("a peer's word", () => {
      peersContract(client)
    })
  })
}
