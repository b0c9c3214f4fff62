import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { begin, call } from '../client.ts'
import { type Handler, type Host, serve, type Served } from '../host.ts'
import { forever } from '../waiting.ts'
import { warningsOf } from '../warnings.ts'

const rounds = 200
const atOnce = 20

/** Law 3: whoever comes first ends the request, alone. */
export function raceContract(host: Host): void {
  describe('law 3: two ends in the same moment', () => {
    test('a client that leaves at the deadline: each request ends once, and nothing is sent to nobody', async () => {
      await using server = await serve(host, { handler: forever, options: { default: 30 } })
      const warnings = await warningsOf(() => leaveAtDeadline(server))
      expect(warnings).toEqual([])
      const { all } = server.finished
      expect(all).toHaveLength(rounds)
      expect(new Set(all.map(({ request }) => request)).size).toBe(rounds)
      for (const { outcome, deadline } of all) expect(outcome).toBe(deadline.reason?.outcome)
    })

    async function leaveAtDeadline(server: Served): Promise<void> {
      for (let round = 0; round < rounds; round += atOnce) {
        const callings = Array.from({ length: atOnce }, () => begin(server))
        const { deadline } = await server.started.nth(round + atOnce)
        const untilThen = deadline.remaining()
        await Promise.all(
          callings.map(async (calling, index) => {
            await sleep(untilThen - atOnce / 4 + index / 2)
            calling.leave()
          }),
        )
      }
      await server.finished.nth(rounds)
      await sleep(50)
    }

    test('an answer at the deadline: it is the handler’s or ours, and counted as such', async () => {
      const handler: Handler = async ({ request }) => {
        await sleep(Number(request.url?.slice(1)))
        return 'done'
      }
      await using server = await serve(host, { handler, options: { default: 30 } })
      const counted = { 200: 0, 504: 0 }
      for (let round = 0; round < rounds; round += atOnce) {
        const replies = await Promise.all(
          Array.from({ length: atOnce }, (_none, index) => call(server, { path: `/${20 + index}` })),
        )
        for (const { status, body } of replies) {
          expect(body).toMatch(status === 200 ? /^done$/ : /DEADLINE_EXCEEDED/)
          counted[status as 200 | 504] += 1
        }
      }
      await server.finished.nth(rounds)
      const ok = server.finished.all.filter(({ outcome, status }) => outcome === 'ok' && status === 200)
      const exceeded = server.finished.all.filter(
        ({ outcome, status }) => outcome === 'deadline_exceeded' && status === 504,
      )
      expect({ 200: ok.length, 504: exceeded.length }).toEqual(counted)
      expect(server.finished.all).toHaveLength(rounds)
    })
  })
}
