import { fetch } from '@timebudget/clients/fetch'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { afterAll, describe, expect, onTestFailed, test, type TestContext, vi } from 'vitest'
import type { FaultyChain } from './faulty-chain.ts'
import { RawClient } from './raw-client.ts'
import type { Service } from './service.ts'

/** What may befall one hop of a chain, and how it is undone. */
export interface Fault {
  readonly name: string
  /** Whether the hop before hears of it, so that it need not wait for the deadline. */
  readonly isHeard: boolean
  start(context: TestContext): Promise<FaultyChain>
  strike(chain: FaultyChain, position: number): Promise<void> | void
  undo(chain: FaultyChain, position: number): Promise<void> | void
}

vi.setConfig({ testTimeout: 60_000 })

const budget = 1_000
/** Two busy cores may be late by this much. */
const tolerance = 2_500
const headers = { 'X-Request-Timeout-Ms': budget }
const patiently = { 'X-Request-Timeout-Ms': 15_000 }

/** When it strikes: the last hop is asked for the path, and has answered so far. */
const moments: Readonly<Record<string, { readonly path: string; readonly seen?: RegExp }>> = {
  'while it is idle': { path: '/quick' },
  'before it has answered': { path: '/silent' },
  'in the middle of its body': { path: '/half', seen: /half/ },
  'in the middle of an event stream': { path: '/events', seen: /data: 1/ },
}

/** What must hold whatever befalls a hop, whichever it is, and whatever it is at. */
export function hopContract(fault: Fault): void {
  let running: Promise<FaultyChain> | undefined
  const stop = async (): Promise<void> => {
    const chain = await running
    running = undefined
    await chain?.[Symbol.asyncDispose]()
  }
  afterAll(stop)

  describe.each(['first', 'middle', 'last'].map((name, position) => ({ name, position })))(
    `the $name of three hops, ${fault.name}`,
    ({ position }) => {
      const isSilent = position === 0 && !fault.isHeard

      test.for(Object.entries(moments))(
        '%s, leaves its client one answer in time, the others free, and later requests unharmed',
        async ([, { path, seen }], context) => {
          onTestFailed(stop) // what it left behind is none of the next one's business
          running ??= fault.start(context)
          const chain = await running
          const askedBefore = chain.hop(-1).all('entered', { path }).length
          using client = await RawClient.to(chain.addressOf(0))
          client.get('/quick', patiently)
          expect(await client.answered()).toMatchObject([{ status: 200, body: 'done' }])
          const link = chain.links[position]
          const hungUpBefore = link?.hungUp.near ?? 0
          const strike = async (): Promise<void> => {
            if (path !== '/quick') await chain.hop(-1).report('entered', { path }, askedBefore + 1)
            await fault.strike(chain, position)
          }
          if (path === '/quick') await strike()
          const began = performance.now()
          const ask = isSilent ? askUnderDeadline : askByHand
          const asked = ask(chain, { client, path, seen }, () => (path === '/quick' ? undefined : strike()))
          expect(await asked).toSatisfy(isEndOf({ fault, position, path }))
          const after = performance.now() - began
          expect(after).toBeLessThan(budget + tolerance)
          if (!fault.isHeard) expect(after).toBeGreaterThan(budget - 100)

          const others = chain.hops.filter((_hop, index) => index !== position)
          await allFree(others)
          for (const hop of others.slice(0, position))
            expect(hop.all('finished').at(-1)).not.toMatchObject({ outcome: 'ok' })
          if (link !== undefined && path !== '/quick')
            await expect.poll(() => link.hungUp.near).toBeGreaterThan(hungUpBefore)

          await fault.undo(chain, position)
          await worksAgain(chain, client)
          await allFree(chain.hops)
          expect(client.answers.length).toBeLessThanOrEqual(client.isClosed ? 2 : 3)
        },
      )
    },
  )
}

interface Asking {
  readonly client: RawClient
  readonly path: string
  readonly seen: RegExp | undefined
}

/** How it ended for the client. */
interface End {
  readonly status: number | undefined
  readonly text: string
  readonly isWhole: boolean
}

/** A client without any limit of its own. */
async function askByHand(
  _chain: FaultyChain,
  { client, path, seen }: Asking,
  strike: () => Promise<void> | undefined,
): Promise<End> {
  client.get(path, headers)
  if (seen !== undefined) await client.until(() => seen.test(client.answers[1]?.body ?? ''))
  await strike()
  const answer = (await client.answered(2))[1]
  return { status: answer?.status, text: answer?.body ?? '', isWhole: answer?.isWhole === true }
}

/** A client of ours, for nobody but itself can tell it that the first hop is silent. */
async function askUnderDeadline(
  chain: FaultyChain,
  { path, seen }: Asking,
  strike: () => Promise<void> | undefined,
): Promise<End> {
  using deadline = Deadline.after(budget)
  return runWithDeadline(deadline, async () => {
    const end = { status: undefined as number | undefined, text: '', isWhole: false }
    const striking = seen === undefined ? strike() : undefined
    try {
      const response = await fetch(urlOf(chain, path))
      end.status = response.status
      for await (const chunk of response.body ?? []) {
        const isSeen = seen?.test(end.text) === true
        end.text += Buffer.from(chunk).toString()
        if (!isSeen && seen?.test(end.text) === true) await strike()
      }
      end.isWhole = true
    } catch (error) {
      expect(error).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    }
    await striking
    return end
  })
}

/** What the client may have got, and nothing else. */
function isEndOf({
  fault,
  position,
  path,
}: {
  readonly fault: Fault
  readonly position: number
  readonly path: string
}): (end: End) => boolean {
  return ({ status, text, isWhole }) => {
    const hasBegun = path === '/half' || path === '/events'
    if (hasBegun) return status === 200 && (!isWhole || (path === '/events' && /event: error/.test(text)))
    if (position === 0) return status === undefined
    return isWhole && status === (fault.isHeard ? 502 : 504)
  }
}

function urlOf(chain: FaultyChain, path: string): string {
  const { host, port } = chain.addressOf(0)
  return `http://${host}:${port}${path}`
}

async function allFree(hops: readonly Service[]): Promise<void> {
  for (const hop of hops) {
    await expect.poll(() => hop.running, { timeout: 10_000 }).toBe(0)
    expect(hop.all('crashed')).toEqual([])
  }
}

/** Over the client's own connection if it was left one, over a new one, and over many. */
async function worksAgain(chain: FaultyChain, client: RawClient): Promise<void> {
  const url = urlOf(chain, '/quick')
  if (!client.isClosed) {
    const count = client.answers.length + 1
    client.get('/quick', patiently)
    expect((await client.answered(count)).at(-1)).toMatchObject({ status: 200, body: 'done' })
  }
  const ask = async (): Promise<string> => {
    const response = await globalThis.fetch(url, { headers: { 'X-Request-Timeout-Ms': '15000' } })
    return `${response.status} ${await response.text()}`
  }
  for (let time = 0; time < 3; time += 1) expect(await ask()).toBe('200 done')
  expect(await Promise.all(Array.from({ length: 8 }, ask))).toEqual(Array(8).fill('200 done'))
}
