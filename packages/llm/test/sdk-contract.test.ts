import { createOpenAI } from '@ai-sdk/openai'
import { generateText, streamText } from 'ai'
import { afterAll, describe, test } from 'vitest'
import OpenAI from 'openai'
import { aiSdkSurfaces } from './contract/ai-sdk-surfaces.ts'
import { leavingCases, stayingCases } from './contract/cases.ts'
import { openaiSurfaces } from './contract/openai-surfaces.ts'
import { otherSurfaces } from './contract/other-surfaces.ts'
import { closeBlackHole, play } from './contract/scenarios.ts'

const surfaces = [
  ...openaiSurfaces('openai 6', OpenAI),
  ...otherSurfaces,
  ...aiSdkSurfaces('ai 6', { createOpenAI, generateText, streamText }),
]

afterAll(closeBlackHole)

// real milliseconds on a machine that others use too: a fault fails three times, a hiccup does not
const patience = { retry: 2 }

describe.each(surfaces)('through $name', (surface) => {
  test.concurrent.each(stayingCases)('$name ($mode)', patience, async ({ name, mode, expectation }) => {
    expectation(await play(name, surface, mode), surface)
  })

  test.each(leavingCases(surface))('$name ($mode)', patience, async ({ name, mode, expectation }) => {
    expectation(await play(name, surface, mode), surface)
  })
})
