import { describe, expect, test } from 'vitest'
import { Decoder, type Decoding } from '../src/decoder.ts'

const forEver = new AbortController().signal
const tokens = ['a', 'b', 'c']

async function readAll(decoding: Decoding): Promise<string[]> {
  const read: string[] = []
  for await (const token of decoding.decode(tokens)) read.push(token)
  return read
}

describe('the decode loop', () => {
  test('decodes all tokens, a fixed time apart, and counts them', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 5 })
    const decoding = decoder.join('one', forEver)
    await decoding.turn
    expect(await readAll(decoding)).toEqual(tokens)
    const { recent, ...stats } = decoder.stats()
    expect(stats).toMatchObject({
      tokens: 3,
      decoding: 0,
      waiting: 0,
      secondsAfterGone: 0,
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
      const decoding = decoder.join(id, forEver)
      await decoding.turn
      order.push(id)
      most = Math.max(most, decoder.stats().decoding)
      await readAll(decoding)
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
    const reading = decoder.join('one', controller.signal).decode(tokens)
    await reading.next()
    controller.abort(reason)
    await expect(reading.next()).rejects.toBe(reason)
    expect(decoder.stats()).toMatchObject({ decoding: 0, tokens: 1, requests: { done: 0, cut: 1 } })
  })

  test('a reader who stops frees the slot', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 1 })
    for await (const _ of decoder.join('one', forEver).decode(tokens)) break
    expect(decoder.stats()).toMatchObject({ decoding: 0, requests: { cut: 1 } })
  })

  test('what was decoded counts also if its holder leaves before its reader does', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 1 })
    const decoding = decoder.join('one', forEver)
    const reading = decoding.decode(tokens)
    await reading.next()
    decoding.leave()
    await reading.return(undefined)
    expect(decoder.stats()).toMatchObject({
      decoding: 0,
      tokens: 1,
      requests: { done: 0, cut: 1, unstarted: 0 },
    })
  })

  test('an abort in the line leaves the line and lets the next one move up', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 1 })
    const controller = new AbortController()
    const reason = new Error('nobody waits')
    const [first, second, third] = [
      decoder.join('first', forEver),
      decoder.join('second', controller.signal),
      decoder.join('third', forEver),
    ]
    controller.abort(reason)
    await expect(second.turn).rejects.toBe(reason)
    second.leave()
    expect(decoder.stats()).toMatchObject({ decoding: 1, waiting: 1 })
    first.leave()
    await third.turn
    third.leave()
    expect(decoder.stats()).toMatchObject({ decoding: 0, waiting: 0, requests: { unstarted: 3 } })
  })

  test('a signal that aborted before gets no turn in a line', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 1 })
    const first = decoder.join('first', forEver)
    const late = decoder.join('late', AbortSignal.abort(new Error('nobody waits')))
    await expect(late.turn).rejects.toThrow('nobody waits')
    late.leave()
    first.leave()
    expect(decoder.stats()).toMatchObject({ decoding: 0, waiting: 0 })
  })

  test('a slot that is given back twice is freed once', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 1 })
    const [first, second, third] = ['a', 'b', 'c'].map((id) => decoder.join(id, forEver))
    first?.leave()
    first?.leave()
    await second?.turn
    expect(decoder.stats()).toMatchObject({ decoding: 1, waiting: 1, requests: { unstarted: 1 } })
    third?.leave()
    second?.leave()
    expect(decoder.stats()).toMatchObject({ decoding: 0, waiting: 0, requests: { unstarted: 3 } })
  })

  test('what is decoded after the signal told that nobody waits is counted apart', async () => {
    const decoder = new Decoder({ slots: 1, msPerToken: 1 })
    const controller = new AbortController()
    const reading = decoder.join('one', controller.signal).decode(tokens)
    await reading.next()
    controller.abort()
    // The reader holds the token back for a while; the slot is busy all that time.
    const stopAt = Date.now() + 20
    while (Date.now() < stopAt);
    await reading.next().catch(() => {})
    expect(decoder.stats().secondsAfterGone).toBeGreaterThanOrEqual(0.02)
  })
})
