// The users: each asks at its moment, waits as long as it has patience, and leaves.
import { Agent, request } from 'node:http'
import { serve } from '../support/worker.mjs'
import { patience } from './load-shape.mjs'

const agent = new Agent({ keepAlive: true, maxSockets: Infinity })

serve({
  async run({ port, all }) {
    const startedAt = now()
    const ends = await Promise.all(
      all.map(async ({ at, takes, estimate }) => {
        await new Promise((resolve) => setTimeout(resolve, at))
        return ask({ port, takes, estimate })
      }),
    )
    return { seconds: (now() - startedAt) / 1_000, answered: ends.filter(Boolean).length }
  },
})

/** Whether the answer came while it was waited for. */
function ask({ port, takes, estimate }) {
  return new Promise((resolve) => {
    const headers = { 'x-takes': takes, 'x-estimate': estimate, 'x-waited-for': now() + patience }
    const outgoing = request({ port, host: '127.0.0.1', agent, headers }, (answer) => {
      answer.resume()
      answer.on('end', () => end(answer.statusCode === 200))
      answer.on('error', () => end(false))
    })
    const end = (isAnswered) => {
      clearTimeout(timer)
      resolve(isAnswered)
    }
    const timer = setTimeout(() => {
      outgoing.destroy()
      end(false)
    }, patience)
    outgoing.on('error', () => end(false))
    outgoing.end()
  })
}

function now() {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}
