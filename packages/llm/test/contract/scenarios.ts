import { ClientClosedError, Deadline, runWithDeadline } from '@timebudget/core'
import { governedFetch, type LlmCall, type Profile } from '@timebudget/llm'
import {
  blackHole,
  cutAfter,
  errorAnswer,
  keepAliveForEver,
  type LocalProvider,
  localProvider,
  neverAnswers,
  type ProviderRequest,
  type Script,
  steadyTokens,
  tokensThenSilence,
} from '@timebudget/llm/testing'
import type { Surface } from './surface.ts'

/** What no scenario reaches, on however busy a machine. */
const ample = { connect: 10_000, firstToken: 10_000, idle: 10_000, total: 60_000 } satisfies Profile

/** The limit that a scenario is about, in milliseconds, is the only one within reach. */
export const limits = { connect: 200, firstToken: 400, idle: 300, total: 600 } satisfies Profile

/** Of a stream the first token, of an answer without one all of it. */
const untilSomethingComes = (mode: Mode): Partial<Profile> =>
  mode === 'stream' ? { firstToken: limits.firstToken } : { total: limits.total }

/** What was seen of one call. Plain data, so that another process can tell of it. */
export interface Observation {
  readonly outcome: string | undefined
  readonly code: string | undefined
  readonly complete: boolean | undefined
  readonly ledger: string | undefined
  /** How many records were published. */
  readonly records: number
  /** Requests that reached the provider. */
  readonly requests: number
  readonly text: string
  readonly chunks: number | undefined
  /** Milliseconds until the caller was told. */
  readonly elapsed: number
  /** Whether the SDK threw. */
  readonly threw: boolean
  /** Milliseconds from the caller's leaving to the closing of the provider's connection. */
  readonly closedAfter: number | undefined
  /** Tokens the provider wrote, in all. */
  readonly tokensSent: number | undefined
}

export type Mode = 'stream' | 'whole'

interface Scene {
  readonly script?: Script
  readonly profile?: Partial<Profile>
  /** Milliseconds. */
  readonly budget?: number
  readonly maxRetries?: number
  /** Milliseconds after each of the first two pieces. */
  readonly readerPauses?: number
  /** The address, in place of a provider's. */
  readonly url?: string
  readonly leave?: (leaving: {
    readonly controller: AbortController
    readonly deadline: Deadline
    readonly request: ProviderRequest
  }) => Promise<void>
  /** Leaves the loop after as many pieces. */
  readonly breakAfter?: number
}

/** What is done to each surface, streamed or whole. */
export const scenarios = {
  'a provider that never answers': (mode) => ({ script: neverAnswers(), profile: untilSomethingComes(mode) }),
  'five tokens, then silence': () => ({ script: tokensThenSilence(5), profile: { idle: limits.idle } }),
  'comments for ever': (mode) => ({ script: keepAliveForEver(40), profile: untilSomethingComes(mode) }),
  'deltas that hold nothing': (mode) => ({
    script: { steps: [{ empty: 1000, every: 40 }] },
    profile: untilSomethingComes(mode),
  }),
  'a long answer of steady tokens': () => ({
    script: steadyTokens(40, 80),
    profile: { idle: 2_000, firstToken: 2_000 },
  }),
  'reasoning and arguments of tools alone': () => ({
    script: {
      steps: [
        { reasoning: ['a', 'b', 'c', 'd', 'e', 'f'], every: 350 },
        { tool: { name: 'look', arguments: ['{"a"', ':', '1', '}'] }, every: 350 },
      ],
    },
    profile: { idle: 2_000, firstToken: 2_000 },
  }),
  'a reader slower than the idle limit': () => ({
    script: { steps: [{ text: Array.from({ length: 8 }, () => 'x'.repeat(40_000)) }] },
    profile: { idle: 300 },
    readerPauses: 600,
  }),
  'a connection that is never made': async (): Promise<Scene> => ({
    url: (await openBlackHole()).url,
    profile: { connect: limits.connect },
  }),
  'a deadline before any limit': () => ({ script: neverAnswers(), budget: 150 }),
  'a deadline in the middle': () => ({
    script: steadyTokens(1000, 20),
    budget: 800,
  }),
  'a last event on a connection that stays open': () => ({ script: { ending: 'linger' } }),
  'an end without the last event': () => ({ script: cutAfter(3) }),
  'a connection that is closed half way': () => ({ script: cutAfter(3, 'drop') }),
  'an error within the stream': () => ({
    script: {
      steps: [{ tokens: 2 }, { failure: { message: 'overloaded', type: 'overloaded_error' } }],
      ending: 'cut',
    },
  }),
  'a failing provider, and an SDK left to its own retries': () => ({
    script: errorAnswer(503, { message: 'not now' }, { 'retry-after': '0' }),
    maxRetries: 2,
  }),
  'an answer that is split anywhere': () => ({
    script: { steps: [{ text: ['grüß', ' dich', ' 你好', ' 👋🏽'] }], pieceSize: 3 },
  }),
  'a user who stops': () => ({
    script: steadyTokens(1000, 20),
    leave: async ({ controller, request }) => {
      await request.sent(3)
      controller.abort()
    },
  }),
  'a client that goes away': () => ({
    script: steadyTokens(1000, 20),
    leave: async ({ deadline, request }) => {
      await request.sent(3)
      deadline.cancel(new ClientClosedError('the client left'))
    },
  }),
  'a reader that breaks off': () => ({
    script: steadyTokens(1000, 20),
    breakAfter: 3,
  }),
} satisfies Readonly<Record<string, (mode: Mode) => Scene | Promise<Scene>>>

export type ScenarioName = keyof typeof scenarios

/** Plays a scenario through a surface. */
export async function play(name: ScenarioName, surface: Surface, mode: Mode): Promise<Observation> {
  const scene: Scene = await scenarios[name](mode)
  // Node 22 knows no `using`
  const provider = await localProvider(scene.script === undefined ? {} : { script: scene.script })
  try {
    return await observe(scene, provider, { surface, mode })
  } finally {
    await provider.close()
  }
}

async function observe(
  scene: Scene,
  provider: LocalProvider,
  { surface, mode }: { readonly surface: Surface; readonly mode: Mode },
): Promise<Observation> {
  const calls: LlmCall[] = []
  let recorded: (() => void) | undefined
  const record = new Promise<void>((resolve) => {
    recorded = resolve
  })
  const fetch = governedFetch({
    profile: { ...ample, ...scene.profile },
    onCall(call) {
      calls.push(call)
      recorded?.()
    },
  })
  const deadline = Deadline.after(scene.budget ?? 30_000)
  const controller = new AbortController()
  let leftAt: number | undefined
  const leaving =
    scene.leave === undefined ? undefined : leave(scene.leave, { provider, controller, deadline })
  const startedAt = performance.now()
  let text = ''
  let threw = false
  try {
    const ask = {
      fetch,
      url: scene.url ?? provider.url,
      maxRetries: scene.maxRetries ?? 0,
      signal: scene.leave === undefined ? undefined : controller.signal,
    }
    await runWithDeadline(deadline, async () => {
      if (mode === 'whole') text = await surface.whole(ask)
      else {
        let pieces = 0
        for await (const piece of surface.stream(ask)) {
          text += piece
          if (piece !== '') pieces += 1
          if (scene.readerPauses !== undefined && pieces <= 2) await pause(scene.readerPauses)
          if (pieces === scene.breakAfter) {
            leftAt = performance.now()
            break
          }
        }
      }
    })
  } catch {
    threw = true
  }
  const elapsed = performance.now() - startedAt
  leftAt = (await leaving) ?? leftAt
  await record
  const request = provider.requests[0]
  const closedAt = leftAt === undefined ? undefined : (await request?.closed)?.at
  const [call] = calls
  const error = call?.error
  deadline.settle()
  return {
    outcome: call?.outcome,
    code: typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : undefined,
    complete: call?.complete,
    ledger: deadline.ledger.entries[0]?.outcome,
    records: calls.length,
    requests: provider.requests.length,
    text,
    chunks: call?.contentChunks,
    elapsed,
    threw,
    closedAfter: closedAt === undefined || leftAt === undefined ? undefined : closedAt - leftAt,
    tokensSent: request?.tokensSent,
  }
}

async function leave(
  how: NonNullable<Scene['leave']>,
  {
    provider,
    ...who
  }: { readonly provider: LocalProvider; readonly controller: AbortController; readonly deadline: Deadline },
): Promise<number> {
  await how({ ...who, request: await provider.nextRequest() })
  return performance.now()
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}

let hole: ReturnType<typeof blackHole> | undefined

function openBlackHole(): ReturnType<typeof blackHole> {
  hole ??= blackHole()
  return hole
}

export async function closeBlackHole(): Promise<void> {
  await (await hole)?.close()
  hole = undefined
}
