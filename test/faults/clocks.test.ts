import { expect, test, vi } from 'vitest'
import { type RawAnswer, RawClient } from './raw-client.ts'
import { Service } from './service.ts'
import { ShiftedClock } from './shifted-clock.ts'

vi.setConfig({ testTimeout: 60_000 })

const hour = 3_600_000
/** Two busy cores may be late by this much. */
const tolerance = 4_000

/** The one answer, and how long it took. */
async function ask(
  { port }: Service,
  path: string,
  headers: Readonly<Record<string, string | number>>,
): Promise<RawAnswer & { readonly after: number }> {
  using client = await RawClient.to({ port })
  const began = performance.now()
  client.get(path, headers)
  const [answer] = await client.answered()
  if (answer === undefined) throw new Error('there was no answer')
  return { ...answer, after: performance.now() - began }
}

/** Both headers, as a caller with the right clock sends them. */
function within(budget: number): Readonly<Record<string, string | number>> {
  return { 'X-Request-Deadline': Date.now() + budget, 'X-Request-Timeout-Ms': budget }
}

function expectGiveUp(
  { status, after }: { readonly status: number; readonly after: number },
  budget: number,
): void {
  expect(status).toBe(504)
  expect(after).toBeGreaterThan(budget - 50)
  expect(after).toBeLessThan(budget + tolerance)
}

function behind({ port }: Service): { readonly upstream: string } {
  return { upstream: `http://127.0.0.1:${port}` }
}

test('three hops whose clocks are hours apart keep their client’s budget, no more and no less', async (context) => {
  using early = new ShiftedClock(context, '-2h')
  using late = new ShiftedClock(context, '+3h')
  using later = new ShiftedClock(context, '+1d')
  await using leaf = await Service.start({ framework: 'fastify' }, early)
  await using middle = await Service.start({ framework: 'koa', ...behind(leaf) }, late)
  await using entry = await Service.start({ framework: 'express', ...behind(middle) }, later)
  // more than it takes to get to know a peer's clock
  for (let time = 0; time < 8; time += 1) {
    const left = await ask(entry, '/left', within(20_000))
    expect(left.status).toBe(200)
    expect(Number(left.body)).toBeGreaterThan(10_000)
    expect(Number(left.body)).toBeLessThanOrEqual(20_000)
  }
  expectGiveUp(await ask(entry, '/silent', within(1_000)), 1_000)
  for (const hop of [entry, middle, leaf]) expect(hop.all('crashed')).toEqual([])
})

test.for([
  ['forward', '+0', '+1h'],
  ['back', '+0', '-1h'],
])(
  'a clock that is set %s while requests run ends none early and lets none live longer',
  async ([, before, after], context) => {
    using clock = new ShiftedClock(context, before ?? '')
    await using leaf = await Service.start({ framework: 'fastify' })
    await using entry = await Service.start({ framework: 'express', ...behind(leaf) }, clock)
    for (let time = 0; time < 6; time += 1) await ask(entry, '/quick', within(20_000))

    const patient = ask(entry, '/slow?for=1500', within(20_000))
    const impatient = ask(entry, '/silent', within(2_000))
    await leaf.report('entered', { path: '/slow?for=1500' })
    await leaf.report('entered', { path: '/silent' })
    clock.set(after ?? '')
    expect(await patient).toMatchObject({ status: 200, body: 'done' })
    expectGiveUp(await impatient, 2_000)

    for (let time = 0; time < 6; time += 1) {
      const left = await ask(entry, '/left', within(20_000))
      expect(left.status).toBe(200)
      expect(Number(left.body)).toBeGreaterThan(10_000)
      expect(Number(left.body)).toBeLessThanOrEqual(20_000)
    }
    expectGiveUp(await ask(entry, '/silent', within(1_000)), 1_000)
  },
)

test('an absolute deadline alone kills only where it lies beyond the tolerance, and grants no more than the maximum', async (context) => {
  using clock = new ShiftedClock(context, '+1h')
  await using hop = await Service.start(
    { framework: 'express', options: { skewTolerance: '20s', default: '1s', max: '1500ms' } },
    clock,
  )
  const alone = (left: number): Readonly<Record<string, number>> => ({
    'X-Request-Deadline': Date.now() + left,
  })
  const refused = await ask(hop, '/quick', alone(10_000))
  expect(refused.status).toBe(504)
  const { serverNow, deadline } = JSON.parse(refused.body) as { serverNow: number; deadline: number }
  expect(serverNow - deadline).toBeGreaterThan(hour - 20_000)
  expect(hop.all('entered')).toEqual([])

  clock.set('+10s')
  expect(await ask(hop, '/quick', alone(5_000))).toMatchObject({ status: 200 })
  clock.set('-1h')
  expectGiveUp(await ask(hop, '/silent', alone(500)), 1_500)
})
