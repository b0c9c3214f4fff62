// Plays the contract with the SDKs that need Node 22, and prints what was seen as one JSON.
import type OpenAI from 'openai'
import { type AiSdk, aiSdkSurfaces } from './ai-sdk-surfaces.ts'
import { openaiSurfaces } from './openai-surfaces.ts'
import { closeBlackHole, type Mode, type Observation, play, type ScenarioName } from './scenarios.ts'
import type { Surface } from './surface.ts'

/** One observation, with the surface it was made through. */
export interface Played {
  readonly surface: Pick<Surface, 'name' | 'numbersRetries' | 'cancelsOnBreak'>
  readonly name: ScenarioName
  readonly mode: Mode
  readonly seen: Observation
}

async function newerSurfaces(): Promise<Surface[]> {
  const { default: OpenAI7 } = (await import('openai7')) as unknown as { readonly default: typeof OpenAI }
  const [{ generateText, streamText }, { createOpenAI }] = (await Promise.all([
    import('ai7'),
    import('ai-sdk-openai4'),
  ])) as unknown as readonly [Pick<AiSdk, 'generateText' | 'streamText'>, Pick<AiSdk, 'createOpenAI'>]
  return [
    ...openaiSurfaces('openai 7', OpenAI7),
    ...aiSdkSurfaces('ai 7', { createOpenAI, generateText, streamText }),
  ]
}

/** What to play, given as the one argument; what measures how quickly something is heard of wants to be alone. */
export type ToPlay = ReadonlyArray<{
  readonly name: ScenarioName
  readonly mode: Mode
  readonly wantsToBeAlone: boolean
}>

async function playAll(surface: Surface, cases: ToPlay): Promise<Played[]> {
  const { name, numbersRetries, cancelsOnBreak } = surface
  const played: Played[] = []
  const playEach = async (some: Iterable<ToPlay[number]>): Promise<void> => {
    for (const { name: scenario, mode } of some) {
      if (scenario === 'a reader that breaks off' && !cancelsOnBreak) continue
      const seen = await play(scenario, surface, mode)
      played.push({ surface: { name, numbersRetries, cancelsOnBreak }, name: scenario, mode, seen })
    }
  }
  // as many at a time as vitest plays of the elders; they take the next one from the same iterator
  const together = cases.filter(({ wantsToBeAlone }) => !wantsToBeAlone).values()
  await Promise.all(Array.from({ length: 5 }, () => playEach(together)))
  await playEach(cases.filter(({ wantsToBeAlone }) => wantsToBeAlone))
  return played
}

const cases = JSON.parse(process.argv[2] ?? '[]') as ToPlay
const played: Played[] = []
for (const surface of await newerSurfaces()) played.push(...(await playAll(surface, cases)))
await closeBlackHole()
process.stdout.write(JSON.stringify(played))
