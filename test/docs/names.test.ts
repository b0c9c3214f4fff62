import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { guides, root } from './documents.ts'
import { inlineCodeOf } from './markdown.ts'

/** Names of other libraries and platforms that the guides speak of, and that our sources do not. */
const theirs = new Set(
  `EventSource RetryAgent VirtualService bulkhead connectionTimeout connectionTimeoutMillis createConnection
  createOpenAI errorFilter evaluateWithoutGeneratingNewTokens generateText haltOnTimedout handleAll handlerTimeout
  keepAliveTimeout maxDuration maxRedirections maxRetriesPerRequest parseJson peerHistory preStop retryStrategy
  rollingCountTimeout startNodeSdk terminationGracePeriodSeconds totalTimeout validateStatus volumeThreshold`.split(
    /\s+/,
  ),
)

const sources = ['packages', 'examples'].flatMap((parent) =>
  readdirSync(root + parent, { recursive: true, encoding: 'utf8' })
    .filter((path) => /^[^/]+\/(src|page)\/.*\.ts$/.test(path))
    .map((path) => readFileSync(`${root}${parent}/${path}`, 'utf8')),
)
const printed = guides.flatMap(({ blocks }) => blocks.map(({ code }) => code))

function wordsOf(texts: readonly string[]): Set<string> {
  return new Set(texts.flatMap((text) => text.match(/[A-Za-z_]\w*/g) ?? []))
}

/** `retryEndOf(error)` and `maxWaiting` are names; `retry` alone may be a word, `max_tokens` a field of somebody's. */
function nameIn(code: string): string | undefined {
  const [, name = '', call] = /^([A-Za-z]\w*)(\([^`]*\))?$/.exec(code) ?? []
  return call !== undefined || /[a-z][A-Z]/.test(name) ? name : undefined
}

test('every name in the text of the guides is in the code, or known to be somebody else’s', () => {
  const known = wordsOf([...sources, ...printed])
  const lacking = guides.flatMap(({ path, lines }) =>
    lines.flatMap(({ text, line }) =>
      inlineCodeOf(text)
        .flatMap((code) => nameIn(code) ?? [])
        .filter((name) => !known.has(name) && !theirs.has(name))
        .map((name) => `${path}:${line} ${name}`),
    ),
  )
  expect(lacking).toEqual([])
  expect(sources.length).toBeGreaterThan(100)
})
