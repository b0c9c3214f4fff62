import { breakers, DeadlineQueue, LatencyBook, learnedFloors, RetryBudget } from '@timebudget/resilience'
import { CostMeter, type LlmCall } from '@timebudget/llm'
import { memoryResume } from '@timebudget/sse'
import { PeerClocks } from '@timebudget/core/wire'
import { afterEach, describe, expect, test } from 'vitest'

/** Names that a plain object has without anybody having put them there, and what overwrites its prototype. */
const inherited = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'prototype']

const pristine = Object.getOwnPropertyNames(Object.prototype).toSorted()

afterEach(() => {
  expect(Object.getOwnPropertyNames(Object.prototype).toSorted()).toEqual(pristine)
  expect(Object.keys({})).toEqual([])
})

function callOf(names: Partial<LlmCall>): LlmCall {
  return {
    operation: 'generate',
    provider: 'openai',
    model: 'small',
    url: 'https://api.example.com/',
    task: undefined,
    feature: undefined,
    tenant: undefined,
    attempt: 1,
    outcome: 'ok',
    error: undefined,
    complete: true,
    status: 200,
    retryAfter: undefined,
    usage: { inputTokens: 1_000_000, outputTokens: 0, estimated: false },
    contentChunks: 1,
    textLength: 1,
    timings: { connect: 1, firstToken: 2, total: 3 },
    sdkRetry: false,
    ...names,
  }
}

describe.each(inherited)('the name %j', (name) => {
  test('has a breaker, a floor and latencies of its own', () => {
    const set = breakers()
    expect(set.for(name)).toBe(set.for(name))
    expect(set.for(name)).not.toBe(set.for('other'))
    expect(set.for(name).state).toBe('closed')
    const floors = learnedFloors()
    expect(floors.for(name)).toBe(floors.for(name))
    expect(floors.for(name).current()).toBe(0)
    const book = new LatencyBook()
    expect(book.of(name)).toBe(book.of(name))
    expect([set.size, floors.size, book.size]).toEqual([2, 1, 1])
  })

  test('has a share of the retry budget of its own', () => {
    const budget = new RetryBudget({ ratio: 1, minPerSecond: 0 })
    expect(budget.withdraw(name)).toBe(false)
    budget.deposit(name)
    expect(budget.withdraw(name)).toBe(true)
    expect(budget.withdraw('other')).toBe(false)
  })

  test('is a class of a queue like another', async () => {
    const queue = new DeadlineQueue({ slots: 1 })
    expect(await queue.run(() => 'done', { class: name })).toBe('done')
  })

  test('is a feature, a tenant and a model that is counted, and costs nothing that nobody has said', () => {
    const meter = new CostMeter({
      prices: { small: { input: 1, output: 1 } },
      budgets: { other: { limit: 1 } },
    })
    meter.record(callOf({ feature: name, tenant: name }))
    meter.record(callOf({ model: name }))
    expect(meter.costOf({ model: name, usage: callOf({}).usage })).toBeUndefined()
    expect(meter.refuse({ tenant: name, feature: name })).toBeUndefined()
    expect(meter.report()).toMatchObject([
      { feature: name, tenant: name, amount: 1 },
      { model: name, unpriced: 1 },
    ])
  })

  test('is no stream that could be taken up or stopped', async () => {
    const store = memoryResume()
    expect(await store.read(name, 0)).toBeUndefined()
    expect(await store.stop(name)).toBe(false)
  })

  test('is a peer with a clock like another', () => {
    const peers = new PeerClocks()
    expect(peers.of(name)).toBe(peers.of(name))
    expect(peers.of(name)).not.toBe(peers.of('10.0.0.1'))
    expect(peers.of(name).takeWarning(0)).toBeUndefined()
  })
})
