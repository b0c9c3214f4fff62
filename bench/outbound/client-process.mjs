// A client of one kind: `node client-process.mjs "undici.request" "timebudget"`.
import { Deadline, runWithDeadline } from '@timebudget/core'
import { AsyncLocalStorage } from 'node:async_hooks'
import { clients, inContext, leastAlone, leastByDispatcher } from './clients.mjs'
import { cpuMicroseconds, serve } from '../support/worker.mjs'

const [library, variant] = process.argv.slice(2)
const call = await clients[library][variant]()

/** A request that comes in makes so many calls under its deadline; bare ones stand under none. */
const callsOfARequest = 10
const isOurs = variant.startsWith('timebudget')

async function oneRequest(url) {
  for (let index = 0; index < callsOfARequest; index += 1) await call(url)
}

async function oneRequestUnderDeadline(url) {
  const deadline = Deadline.after(60_000)
  await runWithDeadline(deadline, () => oneRequest(url))
  deadline.settle()
}

const context = new AsyncLocalStorage()

function oneRequestInContext(url) {
  return context.run({}, () => oneRequest(url))
}

const hasContext = [inContext, leastAlone, leastByDispatcher].includes(variant)
const requestOf = isOurs ? oneRequestUnderDeadline : hasContext ? oneRequestInContext : oneRequest

serve({
  async run({ port, requests, atOnce }) {
    const url = `http://127.0.0.1:${port}/`
    const before = cpuMicroseconds()
    const startedAt = performance.now()
    let left = requests
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        while (left > 0) {
          left -= 1
          await requestOf(url)
        }
      }),
    )
    const calls = requests * callsOfARequest
    return {
      cpu: (cpuMicroseconds() - before) / calls,
      perSecond: (calls * 1_000) / (performance.now() - startedAt),
    }
  },
})
