import type { IncomingMessage, ServerResponse } from 'node:http'
import { build } from 'esbuild'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, expect, test, type TestContext, vi } from 'vitest'
import { withDeadline } from '@timebudget/core/server'
import { networkTo } from '../../../test/support/cuttable-network.ts'
import { findProgram, requireOrSkip } from '../../../test/support/requirements.ts'
import { memoryResume, resumeStream, sse, type StreamOptions, stopStream } from '../src/index.ts'
import { aborted, listen, onEnd, pause, type Signal, signal } from './support/server.ts'

// a browser takes its time to start where others work too
vi.setConfig({ testTimeout: 60_000 })

const entry = new URL('../src/browser/index.ts', import.meta.url).pathname

const html = `<!doctype html><meta charset="utf-8"><title>chat</title><p id="text"></p><p id="message"></p>
<script type="module">
  import { streamChat } from '/client.js'
  const show = (id, text) => (document.getElementById(id).textContent = text)
  window.events = []
  window.ask = (options) => {
    show('message', '')
    window.chat = streamChat({
      url: '/chat',
      body: { prompt: 'why' },
      onThinking: (thinking) => window.events.push(['thinking', thinking]),
      onToken: () => show('text', window.chat.text),
      onDone: (end) => show('message', end.outcome),
      onError: (end) => show('message', end.outcome + ': ' + end.message),
      ...options,
    })
  }
</script>`

let launching: Promise<Browser> | undefined
afterAll(async () => {
  const browser = await launching
  await browser?.close()
})

async function newPage(context: TestContext, locale = 'en-GB'): Promise<Page> {
  const program = requireOrSkip(context, findProgram('chromium'), 'apt-get install chromium')
  launching ??= chromium.launch({ executablePath: program, args: ['--no-sandbox'] })
  const browser = await launching
  const tab = await browser.newContext({ locale })
  onEnd(() => tab.close())
  return tab.newPage()
}

interface Site {
  readonly url: string
  readonly methods: string[]
}

/** A page and its chat; what comes to `/chat` is the test's to answer. */
async function site(chat: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<Site> {
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: 'esm', write: false })
  const script = outputFiles[0]?.text ?? ''
  const methods: string[] = []
  const url = await listen((request, response) => {
    if (request.url === '/') return void response.setHeader('content-type', 'text/html').end(html)
    if (request.url === '/client.js') {
      return void response.setHeader('content-type', 'text/javascript').end(script)
    }
    if (request.url?.startsWith('/chat') !== true) return void response.writeHead(404).end()
    methods.push(request.method ?? '')
    void chat(request, response)
  })
  return { url, methods }
}

/** A model that says `word 0`, `word 1`, ... and when it was told to stop. */
function answering(
  options: StreamOptions = {},
  { pace = 30, words = Infinity }: { pace?: number; words?: number } = {},
): { answer(response: ServerResponse): Promise<unknown>; stopped: Signal<unknown> } {
  const stopped = signal<unknown>()
  return {
    stopped,
    answer: (response) =>
      sse(response, options).pipe(async function* (scope) {
        void aborted(scope.signal).then(stopped.resolve)
        for (let index = 0; index < words && !scope.signal.aborted; index += 1) {
          yield `word ${index} `
          await pause(pace)
        }
      }),
  }
}

const textOf = (page: Page): Promise<string> => page.locator('#text').innerText()

async function ask(page: Page, options: object = {}): Promise<void> {
  await page.evaluate((given) => (globalThis as unknown as { ask(given: object): void }).ask(given), options)
}

async function shows(page: Page, pattern: RegExp, id = 'text'): Promise<string> {
  const place = page.locator(`#${id}`).filter({ hasText: pattern })
  await place.waitFor({ timeout: 15_000 })
  return place.innerText()
}

test('stopping in the page ends the work at the server, and keeps the text', async (context) => {
  const page = await newPage(context)
  const { answer, stopped } = answering()
  const { url, methods } = await site(withDeadline((_request, response) => answer(response)))
  await page.goto(url)
  await ask(page)
  await shows(page, /word 3/)
  const pressed = performance.now()
  await page.evaluate('chat.stop()')
  expect(await stopped.promise).toMatchObject({ code: 'CLIENT_CLOSED' })
  expect(performance.now() - pressed).toBeLessThan(1_000)
  expect(await shows(page, /stopped/, 'message')).toBe('stopped: Stopped.')
  expect(await textOf(page)).toMatch(/^word 0 word 1 word 2 word 3/)
  expect(methods).toEqual(['POST'])
})

test('closing the tab ends the work at the server', async (context) => {
  const page = await newPage(context)
  const { answer, stopped } = answering()
  const { url } = await site(withDeadline((_request, response) => answer(response)))
  await page.goto(url)
  await ask(page)
  await shows(page, /word 3/)
  const closed = performance.now()
  await page.close()
  expect(await stopped.promise).toMatchObject({ code: 'CLIENT_CLOSED' })
  expect(performance.now() - closed).toBeLessThan(2_000)
})

test('switching tabs, a failure and a cut never ask a second time', async (context) => {
  const page = await newPage(context)
  const { answer } = answering({}, { words: 40 })
  const { url, methods } = await site((_request, response) => answer(response))
  await page.goto(url)
  await ask(page)
  await shows(page, /word 3/)
  for (const state of ['hidden', 'visible']) {
    await page.evaluate((visibility) => {
      const { document, Event } = globalThis as unknown as {
        document: EventTarget
        Event: typeof globalThis.Event
      }
      Object.defineProperty(document, 'visibilityState', { value: visibility, configurable: true })
      Object.defineProperty(document, 'hidden', { value: visibility === 'hidden', configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }, state)
  }
  await shows(page, /done/, 'message')
  expect(await textOf(page)).toMatch(/^word 0 .*word 39$/)
  expect(methods).toEqual(['POST'])

  const failing = await site((_request, response) => response.writeHead(500).end())
  await page.goto(failing.url)
  await ask(page)
  expect(await shows(page, /:/, 'message')).toBe(
    'http_error: The service cannot be reached. Please try again.',
  )
  expect(failing.methods).toEqual(['POST'])

  const cut = await site((_request, response) => {
    void sse(response)
      .token('so far')
      .then(() => setTimeout(() => response.destroy(), 100))
  })
  await page.goto(cut.url)
  await ask(page)
  expect(await shows(page, /:/, 'message')).toBe(
    'interrupted: The connection was lost. What has arrived is kept.',
  )
  expect(await textOf(page)).toBe('so far')
  await pause(500)
  expect(cut.methods).toEqual(['POST'])
})

test('a stream that goes dead shows so after its idle limit, with the text kept', async (context) => {
  const page = await newPage(context)
  const { url } = await site((_request, response) => void sse(response, { heartbeat: null }).token('so far'))
  await page.goto(url)
  await ask(page, { idle: 400 })
  expect(await shows(page, /:/, 'message')).toMatch(/^stalled: The answer has stalled/)
  expect(await textOf(page)).toBe('so far')
})

test('a first token that does not come says so, in the language of the browser, and another try works', async (context) => {
  const page = await newPage(context, 'zh-CN')
  let asked = 0
  const { url } = await site((_request, response) => {
    asked += 1
    const stream = sse(response, { heartbeat: 50 })
    if (asked > 1) void stream.token('Because.').then(() => stream.done())
  })
  await page.goto(url)
  await ask(page, { firstToken: 400 })
  expect(await shows(page, /:/, 'message')).toBe('first_token: 迟迟没有开始回答，请重试。')
  const thoughts = await page.evaluate<[string, { elapsed: number }][]>('events')
  expect(thoughts.length).toBeGreaterThan(2)
  expect(thoughts[0]?.[0]).toBe('thinking')
  await ask(page, { firstToken: 5_000 })
  await shows(page, /done/, 'message')
  expect(await textOf(page)).toBe('Because.')
})

test("the server's deadline shows as such", async (context) => {
  const page = await newPage(context)
  const { answer, stopped } = answering({ heartbeat: 50 })
  const { url } = await site(withDeadline((_request, response) => answer(response), { max: '1m' }))
  await page.goto(url)
  await ask(page, { budget: '1s' })
  expect(await shows(page, /:/, 'message')).toBe('deadline: Time is up. What has arrived is kept.')
  expect(await textOf(page)).toMatch(/^word 0/)
  expect(await stopped.promise).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
})

test('a network that is cut and comes back loses and doubles no token, and stopping then still stops the work', async (context) => {
  const page = await newPage(context)
  const store = memoryResume()
  const { answer, stopped } = answering({ resume: { store, budget: '1m' } })
  const { url, methods } = await site((request, response) => {
    if (request.method === 'GET') return resumeStream(response, store)
    if (request.method === 'DELETE') return stopStream(response, store)
    return answer(response)
  })
  const network = await networkTo(Number(new URL(url).port))
  onEnd(() => network.close())
  await page.goto(network.url)
  await ask(page)
  await shows(page, /word 5/)
  network.cut()
  await pause(700)
  network.restore()
  const text = await shows(page, /word 60/)
  const numbers = [...text.matchAll(/word (\d+)/g)].map(([, number]) => Number(number))
  expect(numbers).toEqual(numbers.map((_, index) => index))
  await page.evaluate('chat.stop()')
  expect(await stopped.promise).toMatchObject({ code: 'CANCELLED' })
  expect(methods[0]).toBe('POST')
  expect(new Set(methods.slice(1))).toEqual(new Set(['GET', 'DELETE']))
})
