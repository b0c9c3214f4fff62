import { describe, expect, test } from 'vitest'
import { OverloadedError } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { CostMeter } from '@timebudget/llm'
import { callOf } from './support/calls.ts'

const prices = { big: { input: 1, output: 10 }, small: { input: 0.1, output: 1 } }

describe('a cost meter', () => {
  test('counts what each feature has cost each tenant by each model, failed and abandoned calls included', () => {
    const meter = new CostMeter({ prices })
    meter.record(callOf({}))
    meter.record(callOf({ outcome: 'stream_stalled', complete: false }))
    meter.record(
      callOf({
        outcome: 'client_closed',
        complete: false,
        usage: { inputTokens: 1_000_000, outputTokens: 3, estimated: true },
      }),
    )
    meter.record(callOf({ model: 'small', tenant: 'other' }))
    expect(meter.report()).toMatchObject([
      {
        feature: 'chat',
        tenant: 'acme',
        model: 'big',
        calls: 3,
        failed: 2,
        abandoned: 1,
        inputTokens: 3_000_000,
      },
      { feature: 'chat', tenant: 'other', model: 'small', calls: 1, failed: 0, abandoned: 0 },
    ])
    const [dear] = meter.report()
    expect(dear?.amount).toBeCloseTo(2 + 2 + 1.00003)
    expect(dear?.estimated).toBeCloseTo(1.00003)
  })

  test('counts a call once, whoever tells of it', () => {
    const meter = new CostMeter({ prices })
    const call = callOf({})
    meter.record(call)
    meter.record(call)
    expect(meter.report()).toMatchObject([{ calls: 1 }])
  })

  test('says how much per task that came to an answer', () => {
    const meter = new CostMeter({ prices })
    meter.record(callOf({}))
    meter.record(callOf({ outcome: 'upstream_error', complete: false }))
    expect(meter.tasks()).toMatchObject([{ feature: 'chat', successes: 0, costPerSuccess: undefined }])
    meter.noteSuccess({ feature: 'chat', tenant: 'acme' })
    expect(meter.tasks()).toMatchObject([
      { feature: 'chat', tenant: 'acme', successes: 1, costPerSuccess: 4 },
    ])
  })

  test('says of which calls it knows no price or no usage, rather than count them as nothing', () => {
    const meter = new CostMeter({ prices })
    meter.record(callOf({ model: 'unheard-of' }))
    meter.record(callOf({ usage: { estimated: false } }))
    expect(meter.report().map(({ unpriced }) => unpriced)).toEqual([1, 1])
  })

  test('refuses a tenant who has spent its budget, until the period is over', () => {
    const clock = new ManualClock()
    const meter = new CostMeter({
      prices,
      clock,
      budgets: { acme: { limit: 3, per: '1h' }, '*': { limit: 100 } },
    })
    const acme = { feature: 'chat', tenant: 'acme' }
    meter.record(callOf({}))
    expect(meter.refuse(acme)).toBeUndefined()
    clock.advance(600_000)
    meter.record(callOf({}))
    const refusal = meter.refuse(acme)
    expect(refusal).toBeInstanceOf(OverloadedError)
    expect(refusal).toMatchObject({ outcome: 'shed', retryAfter: 3_000_000 })
    expect(meter.refuse({ feature: 'chat', tenant: 'other' })).toBeUndefined()
    clock.advance(3_000_000)
    expect(meter.refuse(acme)).toBeUndefined()
  })

  test('has rows of plain counts that only grow, for a metrics library to read as counters', () => {
    const meter = new CostMeter({ prices })
    const read = (): unknown => meter.report().map(({ calls, failed, amount }) => [calls, failed, amount])
    meter.record(callOf({}))
    expect(read()).toEqual([[1, 0, 2]])
    meter.record(callOf({ outcome: 'stream_stalled' }))
    expect(read()).toEqual([[2, 1, 4]])
    expect(meter.report()[0]).toMatchObject({ feature: 'chat', tenant: 'acme', model: 'big' })
  })

  test('keeps a bounded number of rows, whatever names come from outside', () => {
    const meter = new CostMeter({ prices, budgets: { '*': { limit: 1 } } })
    for (let tenant = 0; tenant < 12_000; tenant += 1) meter.record(callOf({ tenant: `t${tenant}` }))
    expect(meter.report()).toHaveLength(10_000)
  })

  test('is a table for people, which no name can break', () => {
    const meter = new CostMeter({ prices, currency: 'EUR' })
    meter.record(callOf({ tenant: 'a\u001b[31m\nb' }))
    const lines = meter.table().split('\n')
    expect(lines).toHaveLength(2)
    expect(lines[0]).toContain('amount EUR')
    expect(lines[1]).toContain('a?[31m?b')
    expect(lines[1]).toContain('2.0000')
  })

  test.each([
    { options: { prices: { big: { input: -1, output: 1 } } }, names: "prices['big'].input" },
    { options: { prices: { big: { input: 1, output: Number.NaN } } }, names: "prices['big'].output" },
    { options: { prices, budgets: { acme: { limit: -1 } } }, names: "budgets['acme'].limit" },
    { options: { prices, budgets: { acme: { limit: 1, per: 'soon' } } }, names: "budgets['acme'].per" },
  ])('names what it cannot read: $names', ({ options, names }) => {
    expect(() => new CostMeter(options)).toThrow(names)
  })
})
