import { expectations } from './expectations.ts'
import type { Mode, Observation, ScenarioName } from './scenarios.ts'
import type { Surface } from './surface.ts'

/** A scenario, played in one way. */
export interface Case {
  readonly name: ScenarioName
  readonly mode: Mode
  readonly expectation: (seen: Observation, surface: Pick<Surface, 'numbersRetries'>) => void
}

const all: readonly Case[] = (Object.keys(expectations) as ScenarioName[]).flatMap((name) =>
  (['stream', 'whole'] as const).flatMap((mode) => {
    const expectation = expectations[name][mode]
    return expectation === undefined ? [] : [{ name, mode, expectation }]
  }),
)

const leavings: ReadonlySet<ScenarioName> = new Set([
  'a user who stops',
  'a client that goes away',
  'a reader that breaks off',
])

/** Those in which the caller leaves: how quickly that is heard of is measured, so that they want to be alone. */
export function leavingCases({ cancelsOnBreak }: Pick<Surface, 'cancelsOnBreak'>): readonly Case[] {
  return all.filter(
    ({ name }) => leavings.has(name) && (cancelsOnBreak || name !== 'a reader that breaks off'),
  )
}

/** All others. */
export const stayingCases: readonly Case[] = all.filter(({ name }) => !leavings.has(name))
