// What the inspector's listening costs: requests and their operations with it and without, in one process, as a ratio of the
// fastest of interleaved rounds. `npm run build`, then `node --expose-gc bench/inspector.mjs`.
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import { Deadline, operation, runWithDeadline } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { inspector } from '@timebudget/inspector'

const rounds = 15

const noop = () => {}

const work = {
  async 'an operation'() {
    const count = 20_000
    for (let request = 0; request < count / 10; request += 1) {
      const deadline = Deadline.after(5_000)
      await runWithDeadline(deadline, async () => {
        for (let index = 0; index < 10; index += 1) await operation('work', { timeout: 1_000 }, noop)
      })
      deadline.settle()
    }
    return count
  },
  async 'a request with two operations'() {
    const count = 500
    for (let index = 0; index < count; index += 1) {
      const asking = request({ port: server.address().port, agent })
      asking.end()
      const [response] = await once(asking, 'response')
      response.resume()
      await once(response, 'end')
    }
    return count
  },
}

const agent = new Agent({ keepAlive: true })
const server = createServer(
  withDeadline(async (_request, response) => {
    await operation('retrieve', { timeout: 1_000 }, noop)
    await operation('generate', { timeout: 1_000 }, noop)
    response.end('done')
  }),
).listen(0, '127.0.0.1')
await once(server, 'listening')

const rows = []
for (const [name, run] of Object.entries(work)) rows.push({ name, ...(await compare(run)) })
console.log(`Node ${process.versions.node}, the fastest of ${rounds} interleaved rounds, CPU time`)
console.table(rows)
agent.destroy()
server.close()

async function compare(run) {
  const best = { without: Infinity, with: Infinity }
  for (let round = 0; round < rounds; round += 1) {
    best.without = Math.min(best.without, await timed(run))
    const inspect = inspector()
    best.with = Math.min(best.with, await timed(run))
    inspect.close()
  }
  return {
    'us without': Math.round(best.without * 100) / 100,
    'us with': Math.round(best.with * 100) / 100,
    ratio: Math.round((best.with / best.without) * 100) / 100,
  }
}

/** Microseconds of CPU for each. */
async function timed(run) {
  globalThis.gc?.()
  const before = process.cpuUsage()
  const count = await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}
