import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { requireOrSkip } from '../support/requirements.ts'
import { type DecodeCount, DecodeEngine, type Decoding, findDecodeLibrary } from './decode-engine.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { tinyLlama } from './tiny-llama.ts'

const library = findDecodeLibrary()
let folder: string | undefined
let engine: DecodeEngine

// it takes seconds to start, and so there is one for all
beforeAll(async () => {
  if (library === undefined) return
  folder = await mkdtemp(join(tmpdir(), 'timebudget-decode-'))
  const modelPath = join(folder, 'tiny-llama.gguf')
  await writeFile(modelPath, tinyLlama(7))
  engine = await DecodeEngine.start(modelPath, library)
}, 60_000)

afterAll(async () => {
  engine?.[Symbol.dispose]()
  if (folder !== undefined) await rm(folder, { recursive: true })
})

beforeEach((context) => {
  requireOrSkip(context, library, 'node scripts/install-apart.mjs')
})

const prompt = 'Tell me a story without an end.'

interface Sent {
  /** What the engine makes of it, once it is there. */
  readonly decoding: Promise<Decoding>
  readonly response: Promise<Response>
  leave(): void
}

function send(url: string, body: object, budget = '20000'): Sent {
  const leaving = new AbortController()
  const decoding = engine.nextDecoding()
  const response = fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-request-timeout-ms': budget },
    body: JSON.stringify(body),
    signal: leaving.signal,
  })
  response.catch(() => undefined) // those who leave do not look at it
  return { decoding, response, leave: () => leaving.abort() }
}

/** At most one more token is begun after the engine's process has been told, and then none but the next caller's. */
async function expectStopped(decoding: Decoding, gateway: Gateway): Promise<DecodeCount> {
  const told = await decoding.told
  const limit = 20
  const next = send(`${gateway.url}/answer`, { prompt, limit }, '8000')
  const answer = await next.response
  expect(answer.status).toBe(200)
  expect((await answer.text()).trim().split(' ')).toHaveLength(limit)

  const ended = await decoding.ended
  expect(ended.decoded - told.decoded).toBeLessThanOrEqual(1)
  const later = await (await next.decoding).ended
  expect(later.decoded - ended.decoded).toBe(limit)
  return ended
}

test('a client that leaves a stream stops the decoding two hops away within one token', async () => {
  await using gateway = await startGateway(engine.url)
  const { decoding, response, leave } = send(`${gateway.url}/words`, { prompt })
  const reader = (await response).body?.getReader()
  for (let chunks = 0; chunks < 10; chunks++) await reader?.read()
  const left = Date.now()
  leave()
  const { epoch } = await expectStopped(await decoding, gateway)
  expect(epoch - left).toBeLessThan(2000)
  expect(await (await decoding).told).toMatchObject({ outcome: 'client_closed' })
  expect(gateway.calls[0]).toMatchObject({ outcome: 'client_closed', complete: false })
})

test('a client that leaves before its whole answer is there stops the decoding within one token', async () => {
  await using gateway = await startGateway(engine.url)
  const { decoding, leave } = send(`${gateway.url}/answer`, { prompt })
  await (
    await decoding
  ).underway
  leave()
  await expectStopped(await decoding, gateway)
  expect(await (await decoding).told).toMatchObject({ outcome: 'client_closed' })
  expect(gateway.calls[0]).toMatchObject({ outcome: 'client_closed', complete: false })
})

test('a deadline that passes in the middle of a stream stops the decoding two hops away', async () => {
  await using gateway = await startGateway(engine.url)
  const { decoding, response } = send(`${gateway.url}/words`, { prompt }, '2000')
  await (
    await decoding
  ).underway
  await expect((await response).text()).rejects.toThrow('terminated')
  await expectStopped(await decoding, gateway)
  // the gateway's giving up may be heard of a moment before the engine's own time is up
  expect(['deadline_exceeded', 'client_closed']).toContain((await (await decoding).told).outcome)
  expect(gateway.calls[0]).toMatchObject({ outcome: 'deadline_exceeded', complete: false })
})

test('an engine stops at the deadline by itself, though its client waits on', async () => {
  await using gateway = await startGateway(engine.url)
  const body = { messages: [{ role: 'user', content: prompt }], stream: true }
  const { decoding, response } = send(`${engine.url}/v1/chat/completions`, body, '2000')
  await (
    await decoding
  ).underway
  expect(await (await response).text()).toMatch(/event: error\ndata: .*"code":"DEADLINE_EXCEEDED".*\n\n$/)
  await expectStopped(await decoding, gateway)
  expect(await (await decoding).told).toMatchObject({ outcome: 'deadline_exceeded' })
})

test('a client that leaves while its long prompt is read stops the reading within one piece', async () => {
  await using gateway = await startGateway(engine.url)
  const letters = 6000
  const { decoding, leave } = send(`${gateway.url}/answer`, { prompt: 'x'.repeat(letters) })
  const begun = await (await decoding).begun
  await (
    await decoding
  ).reading
  leave()
  const ended = await expectStopped(await decoding, gateway)
  const told = await (await decoding).told
  expect(ended.read - told.read).toBeLessThanOrEqual(64)
  expect(ended.read - begun.read).toBeLessThan(letters)
  expect(ended.decoded).toBe(begun.decoded)
})
