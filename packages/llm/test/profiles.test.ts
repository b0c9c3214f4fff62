import { describe, expect, test } from 'vitest'
import { governedFetch, profiles } from '@timebudget/llm'
import { limitsFor, parseProfile } from '../src/profiles.ts'

const call = { model: 'm', task: undefined, url: 'http://127.0.0.1/' }

describe('profiles', () => {
  test('three are built in, from quick to patient', () => {
    const totals = (['classify', 'chat', 'long_summary'] as const).map(
      (name) => limitsFor(name, {}, call).total,
    )
    expect(totals).toEqual([15_000, 60_000, 180_000])
    expect(parseProfile(profiles.chat, 'chat')).toEqual({
      connect: 3_000,
      firstToken: 8_000,
      idleContent: 8_000,
      idleTransport: 8_000,
      total: 60_000,
    })
  })

  test('own ones go by name beside them, or before them', () => {
    const own = { chat: { connect: 1, firstToken: 2, idle: { content: 3, transport: 4 }, total: 5 } }
    expect(limitsFor('chat', own, call)).toEqual({
      connect: 1,
      firstToken: 2,
      idleContent: 3,
      idleTransport: 4,
      total: 5,
    })
    expect(limitsFor('classify', own, call).total).toBe(15_000)
  })

  test('are chosen by model and task', () => {
    const choose = ({
      model,
      task,
    }: {
      readonly model: string | undefined
      readonly task: string | undefined
    }) => (task === 'summary' ? 'long_summary' : model === 'small' ? 'classify' : 'chat')
    expect(limitsFor(choose, {}, { ...call, model: 'small' }).total).toBe(15_000)
    expect(limitsFor(choose, {}, { ...call, task: 'summary' }).total).toBe(180_000)
  })

  test.each([
    [{ profile: 'chatty' }, /profile: none is called 'chatty'; there are classify, chat, long_summary/],
    [{ profile: { ...profiles.chat, idle: 'soon' } }, /profile\.idle: expected a duration/],
    [{ profile: { ...profiles.chat, idle: { content: 1, transport: -1 } } }, /profile\.idle\.transport/],
    [{ profile: { ...profiles.chat, firstByte: 1 } }, /profile\.firstByte: no such limit/],
    [
      { profile: 'chat', profiles: { slow: { ...profiles.chat, total: Number.NaN } } },
      /profiles\.slow\.total/,
    ],
    [{ profile: 'chat', timeout: 5 }, /timeout: no such option/],
    [{}, /profile: expected/],
    [{ profile: 'chat', fetch: 'fetch' }, /fetch: expected a function/],
    [{ profile: 'constructor' }, /none is called 'constructor'/],
  ])('what cannot be read is named: %j', (options, message) => {
    expect(() => governedFetch(options as never)).toThrow(message)
    expect(() => governedFetch(options as never)).toThrow(TypeError)
  })
})
