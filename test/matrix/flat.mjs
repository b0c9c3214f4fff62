// Deadlines of an hour for work that takes no time: what is left of 50,000 of them, and of the memory they took.
import { getEventListeners } from 'node:events'
import { Deadline, operation } from '@timebudget/core'

const shutdown = new AbortController()

async function serve(count) {
  for (let request = 0; request < count; request += 1) {
    const deadline = Deadline.after('1h', { signal: shutdown.signal })
    deadline.signal.addEventListener('abort', () => request)
    const child = deadline.child({ timeout: '30m' })
    child.signal.addEventListener('abort', () => request)
    await operation('work', { deadline }, ({ signal }) => signal.aborted)
    child.settle()
    deadline.settle()
  }
  await new Promise((resolve) => setImmediate(resolve))
  globalThis.gc()
  globalThis.gc()
  return process.memoryUsage().heapUsed
}

const before = await serve(5_000)
const after = await serve(50_000)
process.stdout.write(
  JSON.stringify({
    bytesEach: (after - before) / 50_000,
    timers: process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length,
    listeners: getEventListeners(shutdown.signal, 'abort').length,
  }),
)
