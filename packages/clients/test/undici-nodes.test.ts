import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'vitest'
import { nodeMatrix } from '../../../test/support/node-matrix.ts'
import { requireOrSkip } from '../../../test/support/requirements.ts'

const script = fileURLToPath(new URL('support/instrumented-process.ts', import.meta.url))

async function run(node: string, ...how: string[]): Promise<Record<string, unknown>> {
  const options = ['--conditions=@timebudget/source', '--experimental-eventsource', '--no-warnings']
  const { stdout } = await promisify(execFile)(node, [...options, script, ...how])
  return JSON.parse(stdout) as Record<string, unknown>
}

const once = [1, 1]
const never = [0, 0]
const cut = (...codes: string[]): unknown[] => [codes, 'deadline_exceeded']

const byFetch = {
  fetch: [once, 'ok'],
  'fetch without a deadline': [never],
  'a POST': [once, 'ok'],
  'a slow answer': cut('TypeError', 'DEADLINE_EXCEEDED'),
  'a body that stalls': cut('TypeError', 'DEADLINE_EXCEEDED'),
  'wrapFetch as well': [once, 'ok'],
  'an abort': [['AbortError'], 'cancelled'],
  'a WebSocket with a budget of undefined': ['hello'],
  'a WebSocket with a budget of 300': ['hello', 'ok'],
  'an EventSource': ['hello'],
  uninstrumented: [never],
}

const byUndici = {
  "undici's request": [once, 'ok'],
  "undici's fetch": [once, 'ok'],
  "undici's slow request": cut('DEADLINE_EXCEEDED'),
  "undici's slow fetch": cut('TypeError', 'DEADLINE_EXCEEDED'),
  "the dispatcher's request": [once, 'ok'],
  // what takes our place is not governed
  'after another setGlobalDispatcher': [never],
}

// Node 20 reads no TypeScript; what runs there runs in the tests' own process.
const newer = nodeMatrix().filter(({ version }) => Number(version.split('.')[0]) >= 22)

const patience = { timeout: 60_000 }

test.concurrent.for(newer)(
  'every fetch of Node $version is governed once instrumented',
  patience,
  async ({ path }, context) => {
    const node = requireOrSkip(context, path, 'node scripts/install-node-matrix.mjs')
    context.expect(await run(node, 'nothing')).toEqual(byFetch)
  },
)

const combinations = newer.flatMap(({ version, path }) => [
  ...['undici6', 'undici', 'undici8'].map((beside) => ({ version, path, beside, order: 'before' })),
  // Only an undici of Node's own major finds a dispatcher that it takes for its own.
  { version, path, beside: ownMajor(version), order: 'after' },
])

function ownMajor(version: string): string {
  if (version.startsWith('22.')) return 'undici6'
  return version.startsWith('24.') ? 'undici' : 'undici8'
}

test.concurrent.for(combinations)(
  'beside $beside, loaded $order it was instrumented, on Node $version both are governed',
  patience,
  async ({ path, beside, order }, context) => {
    const node = requireOrSkip(context, path, 'node scripts/install-node-matrix.mjs')
    context.expect(await run(node, beside, order)).toEqual({ ...byFetch, ...byUndici })
  },
)
