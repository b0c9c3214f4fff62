// A process with nothing to do but an operation that is pending lives to see it time out.
import { operation } from '@timebudget/core'

const started = performance.now()
const pending = operation('job', { timeout: 300 }, () => new Promise(() => undefined))
pending.catch(({ code }) =>
  process.stdout.write(JSON.stringify({ code, after: performance.now() - started })),
)
