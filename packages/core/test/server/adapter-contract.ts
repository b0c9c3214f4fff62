import { describe } from 'vitest'
import { arrivalContract } from './contract/arrival.ts'
import { begunResponseContract } from './contract/begun-responses.ts'
import { clientLeavesContract } from './contract/client-leaves.ts'
import { lateAnswerContract } from './contract/late-answers.ts'
import { ownAnswerContract } from './contract/own-answers.ts'
import { wireContract } from './contract/wire.ts'
import { contextContract } from './contract/context.ts'
import { failureContract } from './contract/failures.ts'
import { shutdownContract } from './contract/shutdown.ts'
import { tighteningContract } from './contract/tightening.ts'
import { raceContract } from './contract/races.ts'
import { settledContract } from './contract/settled.ts'
import type { Host } from './host.ts'

/** What every server under a deadline does, whatever framework it is built with. */
export function adapterContract(host: Host): void {
  describe(`${host.name}, ${host.protocol}`, () => {
    arrivalContract(host)
    wireContract(host)
    lateAnswerContract(host)
    ownAnswerContract(host)
    clientLeavesContract(host)
    begunResponseContract(host)
    tighteningContract(host)
    settledContract(host)
    raceContract(host)
    shutdownContract(host)
    failureContract(host)
    contextContract(host)
  })
}
