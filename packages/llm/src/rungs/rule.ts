import { type Duration, parseDuration, refuseUnknownOptions } from '@timebudget/core'
import { expectFunction } from '../expected.ts'
import { expectName, type Rung, type RungScope, wholeText } from './rung.ts'

/** What a rule may be told. */
export interface RuleOptions {
  /** Its name in answers; `'rule'`. */
  readonly name?: string | undefined
  /** Kept for it by the rungs before it; `'100ms'`, for timers that are late. */
  readonly reserve?: Duration | undefined
}

/**
 * A rung that answers by rule: a text worked out from the input, at once. `undefined` passes the input on to the next rung.
 *
 *     rule(({ question }) => `I cannot look that up right now: ${question}`)
 *
 * @throws TypeError that names the argument or option which cannot be read.
 */
export function rule<Input>(
  answer: (input: Input, scope: RungScope) => Promise<string | undefined> | string | undefined,
  options: RuleOptions = {},
): Rung<Input> {
  expectFunction(answer, 'answer', "() => 'Please ask again in a minute.'")
  refuseUnknownOptions(options, ['name', 'reserve'] satisfies (keyof RuleOptions)[])
  const { name = 'rule', reserve = '100ms' } = options
  expectName(name)
  return {
    name,
    floor: undefined,
    reserve: parseDuration(reserve, 'reserve'),
    asksModel: false,
    answersAtOnce: true,
    async open(input, scope) {
      const text = await answer(input, scope)
      return text === undefined ? undefined : { attempt: 1, events: wholeText(text) }
    },
  }
}
