import { fetch } from '@timebudget/clients/fetch'
import { Deadline, operation } from '@timebudget/core'
import { Cron } from 'croner'

const stopping = new AbortController()

/** Does the work by the clock: each run is over before the next one begins, and no two run at once. */
export function schedule(
  pattern: string,
  { name, work }: { readonly name: string; readonly work: (signal: AbortSignal) => Promise<unknown> },
): Cron {
  const options = {
    catch: (error: unknown) => console.error(`${name} failed: ${String(error)}`),
    protect: () => console.warn(`${name} is left out: the last run goes on, in spite of its signal`),
  }
  return new Cron(pattern, options, async (cron) => {
    using deadline = Deadline.at(cron.nextRun() ?? Infinity, { signal: stopping.signal })
    let working: Promise<unknown> | undefined
    try {
      await operation(name, { deadline, reserve: '200ms' }, ({ signal }) => (working = work(signal)))
    } finally {
      await working?.catch(() => undefined) // so that `protect` knows of what ignores its signal
    }
  })
}

const refresh = schedule(process.env['REFRESH_AT'] ?? '*/5 * * * *', {
  name: 'refresh',
  work: () => fetch(`${process.env['INDEX_URL']}/refresh`, { method: 'POST' }),
})

process.once('SIGTERM', () => {
  refresh.stop()
  stopping.abort(new Error('the process is going down'))
})
