// Checks the providers over the SDKs that need Node 22, and prints how each check ended as one JSON.
import type { createOpenAI } from '@ai-sdk/openai'
import type OpenAI from 'openai'
import { checks, type FetchKind } from './checks.ts'
import { type AiSdk, middlewareChecks } from './middleware-checks.ts'
import { aiSdkSurface, openaiSurfaces } from './surfaces.ts'

/** How one check ended. */
export interface Checked {
  readonly surface: string
  readonly check: string
  /** Of the last of three tries, if all failed. */
  readonly problem: string | undefined
}

const { default: OpenAI7 } = (await import('openai7')) as unknown as { readonly default: typeof OpenAI }
const { createOpenAI: create } = (await import('ai-sdk-openai4')) as unknown as {
  readonly createOpenAI: typeof createOpenAI
}
const surfaces = [...openaiSurfaces('openai 7', OpenAI7), aiSdkSurface('@ai-sdk/openai 4', create)]
const fetchKinds: readonly FetchKind[] = ['governed', 'bare']

async function problemOf(run: () => Promise<void>): Promise<string | undefined> {
  let problem: string | undefined
  for (let attempt = 0; attempt < 3; attempt += 1) {
    try {
      await run()
      return undefined
    } catch (error) {
      problem = String(error)
    }
  }
  return problem
}

const checked: Checked[] = []
for (const surface of surfaces) {
  for (const fetchKind of fetchKinds) {
    for (const { name, appliesTo, run } of checks) {
      if (!appliesTo(surface, fetchKind)) continue
      const problem = await problemOf(() => run(surface, fetchKind))
      checked.push({ surface: surface.name, check: `${name} (${fetchKind} fetch)`, problem })
    }
  }
}
const { generateText, streamText, wrapLanguageModel } = (await import('ai7')) as unknown as Omit<
  AiSdk,
  'createOpenAI'
>
const sdk: AiSdk = { createOpenAI: create, generateText, streamText, wrapLanguageModel }
for (const { name, run } of middlewareChecks) {
  checked.push({
    surface: 'the middleware for AI SDK 7',
    check: name,
    problem: await problemOf(() => run(sdk)),
  })
}
process.stdout.write(JSON.stringify(checked))
