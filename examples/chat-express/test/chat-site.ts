import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core'
import { afterAll, afterEach, expect, type TestContext } from 'vitest'
import { type LocalProvider, localProvider, type LocalProviderOptions } from '@timebudget/llm/testing'
import { type CuttableNetwork, networkTo } from '../../../test/support/cuttable-network.ts'
import { findProgram, requireOrSkip } from '../../../test/support/requirements.ts'
import { chatApp as fastifyChat } from '../../chat-fastify/src/chat.ts'
import { chatApp as koaChat } from '../../chat-koa/src/chat.ts'
import { chatApp as expressChat } from '../src/chat.ts'

type Provider = Parameters<typeof expressChat>[0]

/** The three examples, as what answers a request. */
export const hosts: Readonly<Record<string, (provider: Provider) => Promise<RequestListener>>> = {
  Express: async (provider) => expressChat(provider),
  Koa: async (provider) => koaChat(provider).callback(),
  async Fastify(provider) {
    const app = await fastifyChat(provider)
    await app.ready()
    return (request, response) => app.routing(request, response)
  },
}

/** A limit of the page, in milliseconds: an attribute of its form. */
type PageLimits = Partial<Record<'budget' | 'first-token' | 'content' | 'transport', number>>

interface SiteOptions {
  readonly script: LocalProviderOptions['script']
  readonly host?: string
  readonly limits?: PageLimits
  readonly browser?: BrowserContextOptions
}

/** A page in a browser, a chat behind a network that can fail, and a model behind that. */
export interface ChatSite {
  readonly page: Page
  readonly provider: LocalProvider
  readonly network: CuttableNetwork
  /** Questions that came to the server, whoever asked them. */
  readonly posts: () => number
  /** The answer to the latest question. */
  readonly answer: Locator
  ask(question?: string): Promise<void>
  /** The latest turn, once it has come to this state. */
  reaches(state: string): Promise<Locator>
  /** Another process in place of the server's: it knows nothing of what went before. */
  restart(): Promise<void>
}

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

let launching: Promise<Browser> | undefined
let building: Promise<unknown> | undefined
afterAll(async () => {
  const browser = await launching
  await browser?.close()
})

export async function chatSite(context: TestContext, options: SiteOptions): Promise<ChatSite> {
  const { script, host = 'Express', limits = {}, browser: look = {} } = options
  const executablePath = requireOrSkip(context, findProgram('chromium'), 'apt-get install chromium')
  const folder = new URL('..', import.meta.url)
  building ??= promisify(execFile)(process.execPath, ['page/build.mjs'], { cwd: folder })
  launching ??= chromium.launch({ executablePath, args: ['--no-sandbox'] })
  await building
  const provider = await localProvider({ script })
  closers.push(() => provider.close())

  let posts = 0
  const start = async (port: number): Promise<Server> => {
    const answer = await hosts[host]?.({ baseURL: provider.openaiUrl, apiKey: 'local' })
    const server = createServer((request, response) => {
      if (request.method === 'POST') posts += 1
      answer?.(request, response)
    })
    await once(server.listen(port, '127.0.0.1'), 'listening')
    return server
  }
  const stop = async (): Promise<void> => {
    server.close()
    server.closeAllConnections()
    if (server.listening) await once(server, 'close')
  }
  let server = await start(0)
  closers.push(() => stop())
  const { port } = server.address() as AddressInfo
  const network = await networkTo(port)
  closers.push(() => network.close())

  const tab = await (await launching).newContext({ locale: 'en-GB', ...look })
  closers.push(() => tab.close())
  const page = await tab.newPage()
  page.on('pageerror', (error) => expect.unreachable(`the page has failed: ${error.message}`))
  await page.route(`${network.url}/`, async (route) => {
    const response = await route.fetch()
    const html = Object.entries(limits).reduce(
      (text, [name, limit]) => text.replace(new RegExp(`data-${name}="\\d+"`), `data-${name}="${limit}"`),
      await response.text(),
    )
    await route.fulfill({ response, body: html })
  })
  await page.goto(network.url)
  const turn = page.locator('article').last()
  return {
    page,
    provider,
    network,
    posts: () => posts,
    answer: turn.locator('.text'),
    async ask(question = 'Why is the sky blue?') {
      await page.getByRole('textbox').fill(question)
      await page.keyboard.press('Enter')
    },
    async reaches(state) {
      const reached = page.locator(`article:last-child[data-state="${state}"]`)
      await reached.waitFor({ timeout: 30_000 })
      return reached
    },
    async restart() {
      await stop()
      server = await start(port)
    },
  }
}
