import {
  type Clock,
  type Deadline,
  type Duration,
  parseDuration,
  refuseUnknownOptions,
  systemClock,
} from '@timebudget/core'
import type { Answer } from './answer.ts'
import { Climb } from './climb.ts'
import type { CostBook } from './cost-book.ts'
import { expectMethod } from './expected.ts'
import { Reserves } from './reserves.ts'
import type { Rung } from './rungs/rung.ts'

/** What all rungs of a ladder share. */
export interface LadderOptions {
  /** Kept back from all rungs, for sending the answer; 0. */
  readonly reserve?: Duration | undefined
  /** `false` if a model's work must not be done twice, because its tools act; `true`. */
  readonly idempotent?: boolean | undefined
  /** An answer that is cut off after some text: `'return'`ed as incomplete, or what cut it off is `'throw'`n; `'return'`. */
  readonly partial?: 'return' | 'throw' | undefined
  /** Its name in the ledger, above those of its rungs; `'answer'`. */
  readonly operation?: string | undefined
  readonly feature?: string | undefined
  readonly tenant?: string | undefined
  /** Prices answers, and refuses models to tenants who have spent their budget. */
  readonly cost?: CostBook | undefined
  readonly clock?: Clock | undefined
}

/** One question to a ladder. */
export interface Ask {
  /** What it stands under, in place of the ambient deadline. */
  readonly deadline?: Deadline | undefined
  /** The user's stop. */
  readonly signal?: AbortSignal | undefined
  readonly feature?: string | undefined
  readonly tenant?: string | undefined
  /** Of the question, the same when it is asked again; a new one by default. */
  readonly idempotencyKey?: string | undefined
}

/** A piece of an answer. */
export interface Token {
  readonly type: 'text' | 'reasoning' | 'tool'
  /** A piece of the text, of the reasoning, or of a tool call's arguments. */
  readonly text: string
  readonly rung: string
  readonly tool?: ToolPiece | undefined
}

/** Which tool call a piece of arguments belongs to; `id` and `name` come with the first. */
export interface ToolPiece {
  readonly index: number
  readonly id?: string | undefined
  readonly name?: string | undefined
}

/** An answer as it comes, for one reader; the promise settles when it has been read to its end, or left, or its time is up. */
export interface AnswerStream extends AsyncIterable<Token> {
  readonly answer: Promise<Answer>
}

/** Ways to answer, best first. */
export interface Ladder<Input> {
  /**
   * The best answer that the time allows.
   * @throws the deadline's reason once that has ended or the user has gone; what the last rung failed with if none answers.
   */
  run(input: Input, ask?: Ask): Promise<Answer>
  /** The same, piece by piece: once text has been given, no rung says it again. */
  stream(input: Input, ask?: Ask): AnswerStream
}

/** `LadderOptions` with every default filled in. */
export interface ResolvedLadderOptions extends Pick<LadderOptions, 'feature' | 'tenant' | 'cost'> {
  readonly reserve: number
  readonly idempotent: boolean
  readonly partial: 'return' | 'throw'
  readonly operation: string
  readonly clock: Clock
}

/**
 * Answers with the first of these rungs that can in the time that is left. Each may use what the reserves of those after
 * it leave, so the last one always gets its turn.
 *
 *     const answers = ladder([model('gpt-5', askBig), model('gpt-5-mini', askSmall), rule(() => 'Please ask again later.')])
 *     const { text, degraded } = await answers.run({ question })
 *
 * @throws TypeError that names the option which cannot be read.
 */
export function ladder<Input>(rungs: readonly Rung<Input>[], options: LadderOptions = {}): Ladder<Input> {
  const resolved = resolveLadderOptions(options)
  if (!Array.isArray(rungs)) throw new TypeError('rungs: expected an array')
  for (const [index, rung] of rungs.entries()) expectMethod(rung, `rungs[${index}]`, 'open')
  if (rungs.length === 0) throw new TypeError('rungs: a ladder has at least one')
  const names = rungs.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new TypeError(`rungs: two are called '${twice}'`)
  const steps = { rungs, options: resolved, reserves: new Reserves(rungs, resolved) }
  return {
    async run(input, ask = {}) {
      refuseUnknownOptions(ask, askNames, 'ask')
      const climb = new Climb(steps, { input, ask, shows: false })
      for await (const _ of climb.tokens());
      return climb.answer
    },
    stream(input, ask = {}) {
      refuseUnknownOptions(ask, askNames, 'ask')
      const climb = new Climb(steps, { input, ask, shows: true })
      return { answer: climb.answer, [Symbol.asyncIterator]: () => climb.tokens() }
    },
  }
}

const askNames = [
  'deadline',
  'signal',
  'feature',
  'tenant',
  'idempotencyKey',
] as const satisfies (keyof Ask)[]

const optionNames: { readonly [Name in keyof Required<LadderOptions>]: true } = {
  reserve: true,
  idempotent: true,
  partial: true,
  operation: true,
  feature: true,
  tenant: true,
  cost: true,
  clock: true,
}

function resolveLadderOptions(options: LadderOptions): ResolvedLadderOptions {
  refuseUnknownOptions(options, Object.keys(optionNames))
  const { idempotent = true, partial = 'return', operation = 'answer', clock = systemClock } = options
  if (partial !== 'return' && partial !== 'throw') {
    throw new TypeError(`partial: expected 'return' or 'throw', got '${String(partial)}'`)
  }
  const { feature, tenant, cost } = options
  const reserve = parseDuration(options.reserve ?? 0, 'reserve')
  return Object.freeze({ reserve, idempotent, partial, operation, clock, feature, tenant, cost })
}
