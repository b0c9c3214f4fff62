// Fifty calls that nobody answers, each known only by its signal, while memory is allocated and collected.
import { createServer } from 'node:http'
import { Deadline } from '@timebudget/core'

const server = createServer(() => undefined)
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const url = `http://127.0.0.1:${server.address().port}/`

const pressure = setInterval(() => {
  const garbage = Array.from({ length: 20_000 }, () => ({ filler: Array.from({ length: 16 }).fill(0) }))
  if (garbage.length > 0) globalThis.gc()
}, 20)

async function call() {
  const started = performance.now()
  try {
    await fetch(url, { signal: Deadline.after(200).signal })
  } catch (error) {
    return { code: error.code, after: performance.now() - started }
  }
  return { code: 'ANSWERED', after: 0 }
}

const giveUp = new Promise((resolve) => setTimeout(resolve, 5_000, []))
const calls = await Promise.race([Promise.all(Array.from({ length: 50 }, call)), giveUp])
clearInterval(pressure)
const after = calls.map((call) => call.after)
process.stdout.write(
  JSON.stringify({
    aborted: calls.filter(({ code }) => code === 'DEADLINE_EXCEEDED').length,
    earliest: Math.min(...after),
    latest: Math.max(...after),
  }),
)
process.exit(0)
