import { createOpenAI } from '@ai-sdk/openai'
import OpenAI from 'openai'
import { describe, test } from 'vitest'
import { checks, type FetchKind } from './providers/checks.ts'
import { aiSdkSurface, openaiSurfaces, otherSurfaces } from './providers/surfaces.ts'

const surfaces = [
  ...openaiSurfaces('openai 6', OpenAI),
  ...otherSurfaces,
  aiSdkSurface('@ai-sdk/openai 3', createOpenAI),
]

const fetchKinds: readonly FetchKind[] = ['governed', 'bare']

// real milliseconds on a machine that others use too: a fault fails three times, a hiccup does not
const patience = { retry: 2, timeout: 30_000 }

describe.each(surfaces)('$name', (surface) => {
  for (const fetchKind of fetchKinds) {
    for (const { name, wantsToBeAlone, appliesTo, run } of checks) {
      if (!appliesTo(surface, fetchKind)) continue
      const play = wantsToBeAlone ? test : test.concurrent
      play(`${name} (${fetchKind} fetch)`, patience, () => run(surface, fetchKind))
    }
  }
})
