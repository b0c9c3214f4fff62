import { describe, expect, test } from 'vitest'
import { Decoder, type Slot } from '../src/decoder.ts'

const forEver = new AbortController().signal
const tokens = ['a', 'b', 'c']

async function readAll(slot: Slot, signal: AbortSignal = forEver): Promise<string[]> {
  const read: string[] = []
  for await (const token of slot.decode(tokens, signal)) read.push(token)
  return read
}

describe('the decode loop', () => {
  test('decodes all tokens, a fixed time apart, and counts them', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 5 })
    expect(await readAll(await decoder.enter('one', forEver))).toEqual(tokens)
    const { recent, ...stats } = decoder.stats()
    expect(stats).toMatchObject({
      tokens: 3,
      decoding: 0,
      waiting: 0,
      requests: { done: 1, cut: 0, unstarted: 0 },
    })
    expect(stats.decodeSeconds).toBeGreaterThanOrEqual(0.014)
    expect(recent).toMatchObject([{ id: 'one', outcome: 'done', tokens: 3 }])
  })

  test('never decodes more answers at once than it has slots, and serves the line in its order', async () => {
    const decoder = new Decoder({ slots: 2, msPerToken: 1 })
    const order: string[] = []
    let most = 0
    const run = async (id: string): Promise<void> => {
      const slot = await decoder.enter(id, forEver)
      order.push(id)
      most = Math.max(most, decoder.stats().decoding)
      await readAll(slot)
    }
    await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(run))
    expect(order).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    expect(most).toBe(2)
    expect(decoder.stats()).toMatchObject({ decoding: 0, waiting: 0 })
  })

  test('an abort in the middle of an answer stops it with the reason of the signal and frees the slot', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 1 })
    const controller = new AbortController()
    const reason = new Error('nobody waits')
    const slot = await decoder.enter('one', controller.signal)
    const reading = slot.decode(tokens, controller.signal)
    await reading.next()
    controller.abort(reason)
    await expect(reading.next()).rejects.toBe(reason)
    expect(decoder.stats()).toMatchObject({ decoding: 0, tokens: 1, requests: { done: 0, cut: 1 } })
  })

  test('a reader who stops frees the slot', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 1 })
    const slot = await decoder.enter('one', forEver)
    for await (const _ of slot.decode(tokens, forEver)) break
    expect(decoder.stats()).toMatchObject({ decoding: 0, requests: { cut: 1 } })
  })

  test('an abort in the line leaves the line and lets the next one move up', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 1 })
    const controller = new AbortController()
    const reason = new Error('nobody waits')
    const first = await decoder.enter('first', forEver)
    const second = decoder.enter('second', controller.signal)
    const third = decoder.enter('third', forEver)
    controller.abort(reason)
    await expect(second).rejects.toBe(reason)
    expect(decoder.stats()).toMatchObject({ waiting: 1, requests: { unstarted: 1 } })
    first.leave()
    ;(await third).leave()
    expect(decoder.stats()).toMatchObject({ decoding: 0, waiting: 0 })
  })

  test('a slot that is given back twice is freed once', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 1 })
    const slot = await decoder.enter('one', forEver)
    slot.leave()
    slot.leave()
    expect(decoder.stats()).toMatchObject({ decoding: 0, requests: { unstarted: 1 } })
  })

  test('what is decoded after the signal told that nobody waits is counted apart', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 1 })
    const controller = new AbortController()
    const slot = await decoder.enter('one', controller.signal)
    const reading = slot.decode(tokens, controller.signal)
    await reading.next()
    controller.abort()
    // The reader holds the token back for a while; the slot is busy all that time.
    const stopAt = Date.now() + 20
    while (Date.now() < stopAt);
    await reading.next().catch(() => {})
    expect(decoder.stats().secondsAfterGone).toBeGreaterThanOrEqual(0.02)
  })
})
