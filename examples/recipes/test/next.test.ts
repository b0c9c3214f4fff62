import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { requireOrSkip } from '../../../test/support/requirements.ts'
import { keepsItsDeadline } from './http-recipe.ts'
import { isNextInstalled, NextApp } from './next-app.ts'

/** Its source knows of no deadline, and ends as the body that is made of it does. */
const stream = `
  import { once } from 'node:events'
  import { get } from 'node:http'
  import { Readable } from 'node:stream'
  import { withDeadline } from '../search/next-deadline.ts'

  export const GET = withDeadline(async () => {
    const [answer] = await once(get(process.env.INDEX_URL + '/search?q=endless'), 'response')
    return new Response(Readable.toWeb(answer))
  })
`

const server = `
  import { createServer } from 'node:http'
  import { withDeadline } from '@timebudget/core/server'
  import next from 'next'

  const app = next({ dev: false })
  await app.prepare()
  createServer(withDeadline(app.getRequestHandler(), { max: '60s' })).listen(process.env.PORT)
  console.log('Ready')
`

function sourceOf(name: string): string {
  return readFileSync(new URL(`../src/${name}`, import.meta.url), 'utf8')
}

test('Next is there to be tested with', (context) => {
  expect(requireOrSkip(context, isNextInstalled || undefined, 'node scripts/install-apart.mjs')).toBe(true)
})

describe.runIf(isNextInstalled)('a Next.js route handler', () => {
  let building: Promise<NextApp> | undefined
  const built = (): Promise<NextApp> =>
    (building ??= NextApp.build({
      'app/search/next-deadline.ts': sourceOf('next-deadline.ts'),
      'app/search/route.ts': sourceOf('next-route.ts'),
      'app/stream/route.ts': stream,
      'server.mjs': server,
    }))
  afterAll(async () => (await building)?.remove())

  describe('under next start', () => {
    keepsItsDeadline(async (indexUrl) => (await built()).start(indexUrl), { streams: true })
  })

  describe('under a server of its own that has a deadline already', () => {
    keepsItsDeadline(async (indexUrl) => (await built()).start(indexUrl, 'server.mjs'), { streams: true })
  })
})
