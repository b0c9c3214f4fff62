import { Deadline, runWithDeadline } from '@timebudget/core'
import { slowUpstream } from '@timebudget/core/testing'
import { fetch } from '@timebudget/clients/fetch'

/** How many of 20 calls by a Request whose signal aborts after a garbage collection hear of it, in either phase. */
export async function heardAfterCollection(collectGarbage: () => void): Promise<number> {
  let heard = 0
  for (const startsAtOnce of [false, true]) {
    const upstream = await slowUpstream({ startsAtOnce })
    const deadline = Deadline.after(10_000)
    const controllers = Array.from({ length: 10 }, () => new AbortController())
    const calls = controllers.map(({ signal }) =>
      runWithDeadline(deadline, () => fetch(new Request(upstream.url, { signal }))).then((response) =>
        response.text(),
      ),
    )
    const ended = Promise.allSettled(calls)
    for (const _ of calls) await upstream.nextRequest()
    for (let round = 0; round < 3; round += 1) {
      collectGarbage()
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    for (const controller of controllers) controller.abort('enough')
    const bound = new Promise((resolve) => setTimeout(resolve, 1_000))
    await Promise.race([ended, bound])
    heard += deadline.ledger.entries.filter(({ outcome }) => outcome === 'cancelled').length
    deadline.cancel()
    await upstream.close()
  }
  return heard
}
