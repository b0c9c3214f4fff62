import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, Server } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { scratchFolder } from './compiler.ts'
import { guides } from './documents.ts'
import { exampleShownBy } from './embedded.ts'

interface Example {
  readonly place: string
  readonly code: string
}

/** The blocks that are whole servers. */
const examples: readonly Example[] = guides.flatMap(({ path, blocks }) =>
  blocks
    .filter(
      ({ language, code }) =>
        language === 'ts' &&
        exampleShownBy(code) === undefined &&
        code.includes('listen(') &&
        /= (express|fastify|createServer)\(|new Koa\(/.test(code),
    )
    .map(({ code, line }) => ({ place: `${path}:${line}`, code })),
)
const calling = examples.filter(({ code }) => code.includes('http://index.internal'))

// the first example loads the sources of all packages
vi.setConfig({ testTimeout: 60_000 })

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
  vi.restoreAllMocks()
})

/** A service behind, in place of `index.internal`; its address. */
async function upstream(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  closing.push(() => closeAll(server))
  await once(server, 'listening')
  return `http://127.0.0.1:${portOf(server)}`
}

/** Runs an example with free ports in place of 3000, and `index` in place of `http://index.internal`; its address. */
async function run({ code }: Example, index = 'http://127.0.0.1:9'): Promise<string> {
  using folder = scratchFolder()
  const file = join(folder.path, 'server.ts')
  const before = process.listeners('SIGTERM')
  closing.push(() => {
    const added = process.listeners('SIGTERM').filter((listener) => !before.includes(listener))
    for (const listener of added) process.off('SIGTERM', listener)
  })
  const listening = vi.spyOn(Server.prototype, 'listen')
  const ready = code
    .replaceAll('http://index.internal', index)
    .replaceAll(/\b(listen\(|port: )3000\b/g, '$10')
  writeFileSync(file, ready)
  await import(/* @vite-ignore */ file)
  const servers = listening.mock.contexts.filter((context) => context instanceof Server)
  closing.push(() => servers.forEach(closeAll))
  const [server] = servers
  if (server === undefined) throw new Error('nothing listens')
  if (!server.listening) await once(server, 'listening')
  return `http://localhost:${portOf(server)}${/\.get\('([^']+)'/.exec(code)?.[1] ?? '/search'}`
}

function portOf(server: Server): number {
  const address = server.address() as AddressInfo
  return address.port
}

function closeAll(server: Server & { closeAllConnections?(): void }): void {
  server.close()
  server.closeAllConnections?.()
}

test('there are servers to be run in both languages and for each framework', () => {
  const places = examples.map(({ place }) => place.replace(/:.*/, ''))
  expect(places).toEqual(
    expect.arrayContaining(['README.md', 'README.zh-CN.md', 'docs/guide.md', 'docs/guide.zh-CN.md']),
  )
  expect(calling.length).toBeGreaterThanOrEqual(9)
})

test.for(examples)('the server of $place answers', async (example) => {
  const index = await upstream((_request, response) =>
    response.setHeader('content-type', 'application/json').end('{}'),
  )
  const answer = await fetch(await run(example, index))
  expect(answer.status).toBe(200)
})

test.for(calling)(
  'the server of $place tells what is left, keeps to the deadline and closes its call',
  async (example) => {
    const calls: IncomingMessage[] = []
    const index = await upstream((request) => calls.push(request)) // and never answers
    const url = await run(example, index)

    const answer = await fetch(url, { headers: { 'x-request-timeout-ms': '300' } })

    expect(answer.status).toBe(504)
    expect(answer.headers.get('x-deadline-outcome')).toBe('deadline_exceeded')
    const [call] = calls
    expect(Number(call?.headers['x-request-timeout-ms'])).toBeLessThanOrEqual(300)
    await vi.waitFor(() => expect(call?.destroyed).toBe(true), 5_000)
  },
)
