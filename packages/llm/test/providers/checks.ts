import assert from 'node:assert/strict'
import { currentDeadline, Deadline, runWithDeadline, UpstreamError } from '@timebudget/core'
import { governedFetch, type LlmCall, type ModelEvent, withCallSettings } from '@timebudget/llm'
import {
  cutAfter,
  errorAnswer,
  headersThenSilence,
  type LocalProvider,
  localProvider,
  neverAnswers,
  type Script,
  steadyTokens,
} from '@timebudget/llm/testing'
import type { Place, ProviderSurface } from './surface.ts'

/** What every provider must do; over a governed fetch, and over any other. */
export interface ProviderCheck {
  readonly name: string
  /** Whether it is about milliseconds, or takes all of the processor. */
  readonly wantsToBeAlone: boolean
  readonly appliesTo: (surface: ProviderSurface, fetchKind: FetchKind) => boolean
  run(surface: ProviderSurface, fetchKind: FetchKind): Promise<void>
}

export type FetchKind = 'governed' | 'bare'

interface Scene {
  readonly surface: ProviderSurface
  readonly provider: LocalProvider
  readonly place: Place
  /** What became of the governed calls. */
  readonly calls: readonly LlmCall[]
}

const profile = { connect: '10s', firstToken: '20s', idle: '20s', total: '60s' }

function check(
  name: string,
  script: Script,
  run: (scene: Scene) => Promise<void>,
  {
    wantsToBeAlone = false,
    appliesTo = () => true,
  }: { wantsToBeAlone?: boolean; appliesTo?: ProviderCheck['appliesTo'] } = {},
): ProviderCheck {
  return {
    name,
    wantsToBeAlone,
    appliesTo,
    async run(surface, fetchKind) {
      const provider = await localProvider({ script })
      const calls: LlmCall[] = []
      const fetch =
        fetchKind === 'bare'
          ? globalThis.fetch
          : governedFetch({ profile, onCall: (call) => calls.push(call) })
      try {
        await run({ surface, provider, place: { fetch, url: provider.url }, calls })
      } finally {
        await provider.close()
      }
    },
  }
}

interface Heard {
  readonly events: readonly ModelEvent[]
  readonly text: string
  readonly error: unknown
}

async function hear(events: AsyncIterable<ModelEvent>): Promise<Heard> {
  const heard: ModelEvent[] = []
  let error: unknown
  try {
    for await (const event of events) heard.push(event)
  } catch (thrown) {
    error = thrown
  }
  return { events: heard, text: textOf(heard, 'text'), error }
}

function textOf(events: readonly ModelEvent[], kind: 'text' | 'reasoning'): string {
  return events.map((event) => (event.type === kind ? event.text : '')).join('')
}

const turns = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds))

/** The provider's connection closed within 100 ms, it wrote no more tokens, and nobody asked again. */
async function assertClosed({ provider }: Scene, leftAt: number): Promise<void> {
  const [request] = provider.requests
  assert(request)
  const { byClient, at } = await request.closed
  const sent = request.tokensSent
  assert(byClient)
  assert(at - leftAt < 100, `closed after ${at - leftAt} ms`)
  await turns(150)
  assert.equal(request.tokensSent, sent)
  assert.equal(provider.requests.length, 1)
}

const long = steadyTokens(1000, 20)

function megabytes(count: number): Script {
  return { steps: [{ text: Array.from({ length: 10 * count }, () => 'x'.repeat(100_000)) }] }
}

export const checks: readonly ProviderCheck[] = [
  check(
    'tells the text, the reasoning, what was used and the finish',
    {
      steps: [{ reasoning: ['Hm', ', well'] }, { text: 'Good day to you.' }],
      usage: { input: 20, output: 7, cached: 5, reasoning: 2 },
    },
    async ({ surface, place }) => {
      const { events, text, error } = await hear(surface.ask(place))
      assert.equal(error, undefined)
      assert.equal(text, 'Good day to you.')
      if (surface.tellsReasoning) assert.equal(textOf(events, 'reasoning'), 'Hm, well')
      const usage = events.findLast((event) => event.type === 'usage')?.usage
      assert.equal(usage?.inputTokens, 20)
      assert.equal(usage?.outputTokens, 7)
      assert.equal(usage?.cachedTokens, 5)
      assert.equal(usage?.estimated, false)
      if (surface.countsReasoning) assert.equal(usage?.reasoningTokens, 2)
      assert.equal(events.filter(({ type }) => type === 'finish').length, 1)
    },
  ),
  check(
    'tells a tool call in pieces, its id and its name first',
    { steps: [{ tool: { name: 'look', arguments: ['{"a"', ':', '1}'] } }] },
    async ({ surface, place }) => {
      const { events, error } = await hear(surface.ask(place))
      assert.equal(error, undefined)
      const pieces = events.filter((event) => event.type === 'tool')
      assert.equal(pieces[0]?.name, 'look')
      assert(pieces[0].id)
      assert(pieces.slice(1).every(({ name }) => name === undefined))
      assert.equal(new Set(pieces.map(({ index }) => index)).size, 1)
      assert.equal(pieces.map((piece) => piece.arguments).join(''), '{"a":1}')
      assert.notEqual(events.findLast((event) => event.type === 'finish')?.reason, 'stop')
    },
  ),
  check('asks for a stream, with the idempotency key', {}, async ({ surface, place, provider }) => {
    await hear(surface.ask(place, { idempotencyKey: 'k1' }))
    const [request] = provider.requests
    assert.equal(request?.streams, true)
    assert.equal(request.headers['idempotency-key'], 'k1')
  }),
  check(
    'asks once, whatever the SDK would do by itself',
    errorAnswer(503, {}, { 'retry-after': '0' }),
    async ({ surface, place, provider }) => {
      const { error } = await hear(surface.ask(place))
      assert(error instanceof Error)
      assert.equal(provider.requests.length, 1)
    },
  ),
  check(
    'closes the upstream connection when the user stops',
    long,
    async (scene) => {
      const { surface, place, provider } = scene
      const controller = new AbortController()
      const hearing = hear(surface.ask(place, { signal: controller.signal }))
      const request = await provider.nextRequest()
      await request.sent(3)
      const reason = new Error('stopped by the user')
      const leftAt = performance.now()
      controller.abort(reason)
      const { error } = await hearing
      assert.equal(error, reason)
      assert(performance.now() - leftAt < 100)
      await assertClosed(scene, leftAt)
    },
    { wantsToBeAlone: true },
  ),
  check(
    'closes the upstream connection when the user stops before it has answered',
    neverAnswers(),
    async (scene) => {
      const { surface, place, provider } = scene
      const controller = new AbortController()
      const hearing = hear(surface.ask(place, { signal: controller.signal }))
      await provider.nextRequest()
      const leftAt = performance.now()
      controller.abort()
      const { error } = await hearing
      assert.equal(error, controller.signal.reason)
      await assertClosed(scene, leftAt)
    },
    { wantsToBeAlone: true },
  ),
  check(
    'closes the upstream connection when its reader breaks off',
    long,
    async (scene) => {
      let read = 0
      for await (const event of scene.surface.ask(scene.place)) {
        if (event.type === 'text') read += 1
        if (read === 3) break
      }
      await assertClosed(scene, performance.now())
    },
    { wantsToBeAlone: true },
  ),
  check(
    'closes the upstream connection when its reader leaves while it is silent',
    headersThenSilence(),
    async (scene) => {
      const events = scene.surface.ask(scene.place)
      const waiting = events.next()
      await scene.provider.nextRequest()
      const leftAt = performance.now()
      await events.return?.()
      assert.deepEqual(await waiting, { done: true, value: undefined })
      await assertClosed(scene, leftAt)
    },
    { wantsToBeAlone: true },
  ),
  check('ends with the ambient deadline', long, async ({ surface, place, provider }) => {
    const deadline = Deadline.after('300ms')
    const { error } = await runWithDeadline(deadline, async () => hear(surface.ask(place)))
    assert.equal(error, deadline.reason)
    const request = await provider.nextRequest()
    assert((await request.closed).byClient)
  }),
  check(
    'an end of the connection is no end of the answer',
    cutAfter(3),
    async ({ surface, place, calls }) => {
      const { text, error } = await hear(surface.ask(place))
      assert.equal(text, 'word word word')
      assert(error instanceof Error)
      if (place.fetch !== globalThis.fetch) return assert.equal(calls[0]?.outcome, 'upstream_error')
      assert(error instanceof UpstreamError)
      assert.match(error.message, /interrupted/)
    },
  ),
  check('a connection that drops is a failure', cutAfter(3, 'drop'), async ({ surface, place }) => {
    const { text, error } = await hear(surface.ask(place))
    assert.equal(text, 'word word word')
    assert(error instanceof Error)
  }),
  check(
    'an error within the stream is a failure, and closes the connection',
    {
      steps: [
        { tokens: 2 },
        { wait: 50 },
        { failure: { message: 'too much to do', type: 'overloaded_error' } },
      ],
      ending: 'silence',
    },
    async ({ surface, place, provider }) => {
      const { text, error } = await hear(surface.ask(place))
      assert.equal(text, 'word word')
      assert(error instanceof Error)
      if (place.fetch === globalThis.fetch) assert.match(error.message, /too much to do|interrupted/)
      const request = await provider.nextRequest()
      assert((await request.closed).byClient)
    },
    { appliesTo: ({ hearsErrors }, fetchKind) => hearsErrors || fetchKind === 'governed' },
  ),
  check(
    'a chunk that cannot be read is a failure',
    { steps: [{ tokens: 2 }, { wait: 50 }, { raw: 'event: content_block_delta\ndata: {"oops\n\n' }] },
    async ({ surface, place }) => {
      const { text, error } = await hear(surface.ask(place))
      assert.equal(text, 'word word')
      assert(error instanceof Error)
    },
  ),
  check(
    'characters may be split anywhere',
    { steps: [{ text: ['grüß', ' dich', ' 你好', ' 👋🏽'] }], pieceSize: 3 },
    async ({ surface, place }) => {
      const { text, error } = await hear(surface.ask(place))
      assert.equal(error, undefined)
      assert.equal(text, 'grüß dich 你好 👋🏽')
    },
  ),
  check(
    'a megabyte of text comes whole',
    megabytes(1),
    async ({ surface, place }) => {
      const { text, error } = await hear(surface.ask(place))
      assert.equal(error, undefined)
      assert.equal(text.length, 1_000_000)
    },
    { wantsToBeAlone: true },
  ),
  check(
    'ten megabytes of text come whole',
    megabytes(10),
    async ({ surface, place }) => {
      const { text, error } = await hear(surface.ask(place))
      assert.equal(error, undefined)
      assert.equal(text.length, 10_000_000)
    },
    { wantsToBeAlone: true, appliesTo: ({ takesMuch }) => takesMuch },
  ),
  check(
    'the SDK’s own timeout does not cut earlier',
    { headersAfter: 600 },
    async ({ surface, place }) => {
      const { error, text } = await hear(surface.ask({ ...place, timeout: 150 }))
      assert.equal(error, undefined)
      assert.notEqual(text, '')
    },
    { appliesTo: ({ hasTimeout }) => hasTimeout },
  ),
  check(
    'belongs to whoever made it, not to whoever reads it',
    {},
    async ({ surface, place, calls }) => {
      const deadline = Deadline.after('20s')
      const events = runWithDeadline(deadline, () =>
        withCallSettings({ feature: 'chat' }, () => surface.ask(place)),
      )
      assert.equal(currentDeadline(), undefined)
      await hear(events)
      assert.equal(calls[0]?.feature, 'chat')
      assert.deepEqual(
        deadline.ledger.entries.map(({ name }) => name),
        ['generate'],
      )
      deadline.settle()
    },
    { appliesTo: (_, fetchKind) => fetchKind === 'governed' },
  ),
  check('asks for nothing once its signal has aborted', {}, async ({ surface, place, provider }) => {
    const { error } = await hear(surface.ask(place, { signal: AbortSignal.abort('left') }))
    assert.equal(error, 'left')
    assert.equal(provider.requests.length, 0)
  }),
]
