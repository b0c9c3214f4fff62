import { objectOf, textOf } from './protocols/json.ts'
import type { Protocol } from './protocols/protocol.ts'
import { protocolAt } from './protocols/which.ts'

/** What a call asks of which model. */
export interface Asked {
  readonly url: URL
  readonly provider: string
  readonly protocol: Protocol | undefined
  readonly model: string | undefined
  readonly streams: boolean
  /** Characters of the prompt, as far as they are known. */
  readonly promptLength: number | undefined
}

/** Reads a request, whose body SDKs give as text; of any other body nothing is known. */
export function readAsked(url: URL, body: unknown): Asked {
  const json = typeof body === 'string' ? parse(body) : undefined
  const asked = objectOf(json)
  return {
    url,
    provider: providerAt(url.hostname),
    protocol: protocolAt(url.pathname),
    // Google, Bedrock and Azure have it in the path
    model: textOf(asked['model']) ?? modelIn(url.pathname),
    streams: asked['stream'] === true || /stream/i.test(url.pathname),
    promptLength: json === undefined ? undefined : lengthOf(promptMembers.map((name) => asked[name])),
  }
}

const promptMembers = [
  'messages',
  'input',
  'prompt',
  'system',
  'instructions',
  'contents',
  'tools',
  'functions',
]

const providers: ReadonlyArray<readonly [RegExp, string]> = [
  [/(^|\.)openai\.com$/, 'openai'],
  [/\.openai\.azure\.com$/, 'azure'],
  [/(^|\.)anthropic\.com$/, 'anthropic'],
  [/\.googleapis\.com$/, 'google'],
  [/\.amazonaws\.com$/, 'bedrock'],
  [/(^|\.)mistral\.ai$/, 'mistral'],
  [/(^|\.)groq\.com$/, 'groq'],
  [/(^|\.)openrouter\.ai$/, 'openrouter'],
  [/(^|\.)deepseek\.com$/, 'deepseek'],
  [/(^|\.)x\.ai$/, 'xai'],
]

function providerAt(host: string): string {
  return providers.find(([pattern]) => pattern.test(host))?.[1] ?? host
}

function modelIn(path: string): string | undefined {
  return /\/(?:models?|deployments)\/([^/:]+)/.exec(path)?.[1]
}

/** All text within, but for images and the like, which count otherwise. */
function lengthOf(value: unknown, depth = 0): number {
  if (typeof value === 'string') return isMedia(value) ? 0 : value.length
  if (typeof value !== 'object' || value === null || depth > 10) return 0
  return Object.values(value).reduce<number>((sum, member) => sum + lengthOf(member, depth + 1), 0)
}

function isMedia(text: string): boolean {
  return text.startsWith('data:') || (text.length > 2_000 && !text.slice(0, 2_000).includes(' '))
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
