import { createServer } from 'node:net'
import { once } from 'node:events'
import {
  aiSdk,
  aiSdkMiddleware,
  anthropicMessages,
  cached,
  CostMeter,
  Figures,
  governedFetch,
  job,
  ladder,
  langchainChat,
  model,
  openaiChat,
  openaiResponses,
  rule,
  watchStream,
  withCallSettings,
} from '@timebudget/llm'
import { localProvider } from '@timebudget/llm/testing'
import { describe, expect, test } from 'vitest'
import { says } from './support/saying.ts'

/** What JavaScript lets through and TypeScript would not. */
const anything = (value: unknown): never => value as never

const ask = (): AsyncIterable<never> => anything(says('so'))
const cache = { get: async () => undefined, set: async () => undefined }
const prices = { big: { input: 1, output: 1 } }
const answers = ladder<string>([rule(() => 'sorry')])

describe('what cannot be meant is refused by its name', () => {
  test.each<{ readonly name: string; readonly call: () => unknown }>([
    { name: 'flor', call: () => model('big', ask, anything({ flor: 1 })) },
    { name: 'timeout', call: () => rule(() => 'sorry', anything({ timeout: 1 })) },
    { name: 'ttl', call: () => cached(cache, anything({ key: String, ttl: 1 })) },
    { name: 'url', call: () => job(undefined, anything({ url: '/' })) },
    { name: 'timeout', call: () => governedFetch(anything({ profile: 'chat', timeout: 1 })) },
    { name: 'timeout', call: () => watchStream(says('so'), 'chat', anything({ timeout: 1 })) },
    { name: 'timeout', call: () => aiSdkMiddleware(anything({ profile: 'chat', timeout: 1 })) },
    { name: 'currenci', call: () => new CostMeter(anything({ prices, currenci: 'EUR' })) },
    {
      name: "prices['big'].cached",
      call: () => new CostMeter({ prices: { big: anything({ input: 1, output: 1, cached: 1 }) } }),
    },
    {
      name: "budgets['acme'].limits",
      call: () => new CostMeter({ prices, budgets: { acme: anything({ limits: 1 }) } }),
    },
    { name: 'window', call: () => new Figures(anything({ window: 1 })) },
    { name: 'settings.user', call: () => withCallSettings(anything({ user: 'me' }), () => 1) },
    { name: 'ask.tennant', call: () => answers.stream('why?', anything({ tennant: 'acme' })) },
  ])('an option that does not exist: $name', ({ name, call }) => {
    expect(call).toThrow(TypeError)
    expect(call).toThrow(`${name}: no such option; there are `)
  })

  test.each<{ readonly name: string; readonly call: () => unknown }>([
    { name: 'name', call: () => model(anything(undefined), ask) },
    { name: 'ask', call: () => model('big', anything('gpt-5')) },
    { name: 'attempts', call: () => model('big', ask, { attempts: 0 }) },
    { name: 'floor', call: () => model('big', ask, { floor: 'soon', reserve: '1s' }) },
    { name: 'answer', call: () => rule(anything('sorry')) },
    { name: 'name', call: () => rule(() => 'sorry', { name: '' }) },
    { name: 'cache', call: () => cached(anything(undefined), { key: String }) },
    { name: 'cache', call: () => cached(anything({ get: cache.get }), { key: String }) },
    { name: 'options', call: () => cached(cache, anything(undefined)) },
    { name: 'key', call: () => cached(cache, anything({})) },
    { name: 'queue', call: () => job(anything('redis://')) },
    { name: 'location', call: () => job(undefined, { location: anything('/answers') }) },
    { name: 'rungs', call: () => ladder(anything(rule(() => 'sorry'))) },
    { name: 'rungs[1]', call: () => ladder([rule(() => 'sorry'), anything(ask)]) },
    { name: 'options', call: () => governedFetch(anything(undefined)) },
    { name: 'profile', call: () => governedFetch(anything({})) },
    { name: 'source', call: () => watchStream(anything(fetch('data:,')), 'chat') },
    { name: 'profile', call: () => watchStream(says('so'), anything(undefined)) },
    { name: 'options', call: () => new CostMeter(anything(undefined)) },
    { name: 'prices', call: () => new CostMeter(anything({})) },
    { name: "prices['big']", call: () => new CostMeter({ prices: { big: anything(1) } }) },
    { name: "budgets['acme']", call: () => new CostMeter({ prices, budgets: { acme: anything(50) } }) },
    { name: 'client', call: () => openaiChat(anything('key'), { messages: [] }) },
    { name: 'client', call: () => openaiResponses(anything({ chat: {} }), {}) },
    { name: 'client', call: () => anthropicMessages(anything(null), {}) },
    { name: 'model', call: () => aiSdk(anything('gpt-5'), { prompt: 'why?' }) },
    { name: 'model', call: () => langchainChat(anything('gpt-5'), []) },
  ])('a value that cannot be read: $name', ({ name, call }) => {
    expect(call).toThrow(TypeError)
    expect(call).toThrow(`${name}: expected `)
  })

  test('also where the refusal is a promise’s', async () => {
    await expect(answers.run('why?', anything({ tennant: 'acme' }))).rejects.toThrow(
      'ask.tennant: no such option',
    )
    await expect(localProvider(anything({ prot: 1 }))).rejects.toThrow('prot: no such option')
    await expect(localProvider({ port: 65_536 })).rejects.toThrow('port: expected ')
  })
})

describe('a local provider', () => {
  test('listens on the port that it is given', async () => {
    const first = await localProvider()
    const { port } = new URL(first.url)
    await first.close()
    const second = await localProvider({ port: Number(port) })
    expect(second.url).toBe(first.url)
    expect((await fetch(`${second.openaiUrl}/models`)).status).toBe(200)
    await second.close()
  })

  test('says so if that port is taken', async () => {
    const holder = createServer().listen(0, '127.0.0.1')
    await once(holder, 'listening')
    const address = holder.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    await expect(localProvider({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
    holder.close()
  })
})
