import {
  type Deadline,
  type Duration,
  type Floor,
  outcomeOf,
  parseDuration,
  refuseUnknownOptions,
} from '@timebudget/core'
import { breaker as makeBreaker, type Breaker, retry, type RetryOptions } from '@timebudget/resilience'
import { trueErrorOf } from '../call-log.ts'
import type { LlmCall } from '../call-record.ts'
import { withOwnSettings } from '../call-settings.ts'
import { expectFunction } from '../expected.ts'
import type { ModelEvent } from '../model-events.ts'
import type { ProfileChoice } from '../profiles.ts'
import { timerLateness } from '../reserves.ts'
import { ModelAttempt } from './model-attempt.ts'
import { expectName, type Rung, type RungAnswer, type RungScope } from './rung.ts'

/** What the function that asks a model gets. */
export interface ModelScope {
  /** Aborts when this attempt's time is up, or nobody waits for it any more. */
  readonly signal: AbortSignal
  readonly deadline: Deadline
  /** From 1. */
  readonly attempt: number
  /** One for all attempts. */
  readonly idempotencyKey: string
}

/** Asks a model: pieces as they come, or the whole text. */
export type AskModel<Input> = (
  input: Input,
  scope: ModelScope,
) => AsyncIterable<ModelEvent> | Promise<AsyncIterable<ModelEvent> | string>

/** How a model is asked. */
export interface ModelOptions {
  /** How often, in all; 2. */
  readonly attempts?: number | undefined
  /** The four limits of each call; that of its `governedFetch`. */
  readonly profile?: ProfileChoice | undefined
  readonly task?: string | undefined
  /** It is not asked with less than this left; 0. */
  readonly floor?: Floor | undefined
  /**
   * Kept for it by the rungs before it; its floor and 100 ms for timers that are late, if that is a duration. Without one a
   * model that is not the first has `'1s'`, or an equal share of what is left if that is less.
   */
  readonly reserve?: Duration | undefined
  /** Before another attempt; `retry`'s. */
  readonly backoff?: RetryOptions['backoff']
  /** Limits how many calls are repeated; `retry`'s, `null` for none. */
  readonly budget?: RetryOptions['budget']
  /** Keeps off a model that keeps failing; one of its own by default, `null` for none. */
  readonly breaker?: Breaker | null | undefined
  readonly random?: (() => number) | undefined
}

const optionNames = [
  'attempts',
  'profile',
  'task',
  'floor',
  'reserve',
  'backoff',
  'budget',
  'breaker',
  'random',
] as const satisfies (keyof ModelOptions)[]

/**
 * A rung that asks a model. It is asked again if it fails of what may pass before it has said anything; not if it took too
 * long for its first token: then the next rung has its turn at once.
 *
 *     model('gpt-5', ({ question }, { signal }) => openaiChat(openai, { model: 'gpt-5', messages: ask(question) }, { signal }), { floor: '2s' })
 *
 * @throws TypeError that names the option which cannot be read.
 */
export function model<Input>(name: string, ask: AskModel<Input>, options: ModelOptions = {}): Rung<Input> {
  expectName(name)
  expectFunction(ask, 'ask', '(input, scope) => openaiChat(client, params, scope)')
  refuseUnknownOptions(options, optionNames)
  const { attempts = 2, floor, profile, task, backoff, budget, random } = options
  const guard = options.breaker === undefined ? makeBreaker(name) : (options.breaker ?? undefined)
  if (!Number.isInteger(attempts) || attempts < 1)
    throw new TypeError(`attempts: expected a whole number of at least 1, got ${String(attempts)}`)
  const reserve = reserveOf(options)
  return {
    name,
    floor,
    reserve,
    asksModel: true,
    answersAtOnce: false,
    open: (input, scope) =>
      withOwnSettings({ profile, task }, () => openModel({ name, ask, input, scope, guard })),
  }

  function openModel({ input, scope }: Opening<Input>): Promise<RungAnswer> {
    let known: LlmCall | undefined
    return withOwnSettings({ onCall: (call) => (known = call) }, () =>
      retry<RungAnswer>(
        async ({ attempt, signal, deadline }) => {
          known = undefined
          scope.noteBegun(attempt)
          const begun = new ModelAttempt({ name, guard, scope, attempt, signal })
          const source = (): ReturnType<AskModel<Input>> =>
            ask(input, { signal: begun.signal, deadline, attempt, idempotencyKey: scope.idempotencyKey })
          const startedAt = deadline.elapsed()
          try {
            return { attempt, events: await begun.firstOf(source) }
          } catch (error) {
            const failure = trueErrorOf(error, known)
            scope.noteAttempt({ attempt, error: failure, spent: deadline.elapsed() - startedAt })
            throw failure
          }
        },
        {
          operation: 'attempt',
          attempts,
          backoff,
          budget,
          random,
          // what is not its own while it has shown nothing is no time for another attempt
          floor: scope.reserve,
          deadline: scope.deadline,
          idempotent: scope.idempotent,
          retryOn: (end) => (end.kind === 'error' ? mayPass(end.error, known) : undefined),
        },
      ),
    )
  }
}

interface Opening<Input> {
  readonly name: string
  readonly ask: AskModel<Input>
  readonly input: Input
  readonly scope: RungScope
  readonly guard: Breaker | undefined
}

function reserveOf({ reserve, floor }: ModelOptions): number | undefined {
  const needed = floor === undefined || typeof floor === 'object' ? 0 : parseDuration(floor, 'floor')
  if (reserve !== undefined) return parseDuration(reserve, 'reserve')
  return needed === 0 ? undefined : needed + timerLateness
}

/** What is known of calls to models; `undefined` leaves it to the rules of `retry`. */
function mayPass(error: unknown, call: LlmCall | undefined): boolean | undefined {
  if (outcomeOf(error) === 'first_token_timeout' || call?.providerCode === 'insufficient_quota') return false
  if (call?.outcome !== 'upstream_error' || call.status === undefined) return undefined
  // by the record, since in the SDK's error stands `x-should-retry: false`: that is ours, for the SDK
  if (call.shouldRetry === false) return false
  return call.status < 400 || passing.has(call.status)
}

/** Statuses that may be others in a moment; 529 is Anthropic's word for being overloaded. A stream that broke had 200. */
const passing: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504, 529])
