import { describe, expect, test } from 'vitest'
import { decodeDeadline, defaultAccept, PeerClock, PeerClocks } from '@timebudget/core/wire'
import type { WireDeadline } from '@timebudget/core/wire'

const start = 1_767_225_600_000
const minute = 60_000
const year = 365 * 24 * 60 * minute

interface Message {
  readonly relative?: number
  /** How far the sender's clock is ahead of ours, ms. */
  readonly ahead?: number
  /** Network and queue time, ms. */
  readonly underway?: number
  readonly at?: number
  readonly skewTolerance?: number
}

/** One request as it is read here, sent by a peer whose clock may be off. */
function receive(peer: PeerClock | undefined, message: Message = {}): WireDeadline | undefined {
  const { relative = 5_000, ahead = 0, underway = 2, at = start, skewTolerance = 50 } = message
  const sentOnTheirClock = at - underway + ahead
  const headers = {
    'x-request-deadline': String(sentOnTheirClock + relative),
    'x-request-timeout-ms': String(relative),
  }
  return decodeDeadline(headers, defaultAccept, at, { skewTolerance, ...(peer && { peer }) }).deadline
}

function peerWithSamples(count: number, message: Message = {}): PeerClock {
  const peer = new PeerClock()
  for (let sample = 0; sample < count; sample += 1) receive(peer, message)
  return peer
}

describe('clocks that are apart', () => {
  test.each([10 * minute, -10 * minute, year, -year, 3_000, -3_000, 75, -75])(
    'by %d ms change nothing where a pair is sent: nothing killed, nothing lengthened',
    (ahead) => {
      const peer = new PeerClock()
      for (let message = 0; message < 50; message += 1) {
        const at = start + message * 100
        const deadline = receive(peer, { ahead, at, underway: 1 + (message % 7) })
        expect(deadline).toMatchObject({ remaining: 5_000, charged: 0 })
      }
    },
  )

  test('are measured: the skew of a message is its transit, the difference of the clocks included', () => {
    expect(receive(undefined, { ahead: -10 * minute, underway: 3 })?.skew).toBe(10 * minute + 3)
    expect(receive(undefined, { ahead: 10 * minute, underway: 3 })?.skew).toBe(-10 * minute + 3)
  })
})

describe('time spent in an accept queue', () => {
  test.each([0, 10 * minute, -10 * minute, year, -year])(
    'is charged once five messages are known, with clocks %d ms apart too',
    (ahead) => {
      const peer = peerWithSamples(5, { ahead })
      expect(receive(peer, { ahead, underway: 302 })).toMatchObject({ remaining: 4_700, charged: 300 })
    },
  )

  test('is not charged before that', () => {
    const peer = peerWithSamples(4)
    expect(receive(peer, { underway: 302 })).toMatchObject({ remaining: 5_000, charged: 0 })
    expect(receive(peer, { underway: 302 })).toMatchObject({ remaining: 4_700, charged: 300 })
  })

  test('is not charged up to the tolerance, and wholly beyond it', () => {
    expect(receive(peerWithSamples(5), { underway: 52 })?.charged).toBe(0)
    expect(receive(peerWithSamples(5), { underway: 53 })?.charged).toBe(51)
    expect(receive(peerWithSamples(5), { underway: 53, skewTolerance: 10 })?.charged).toBe(51)
    expect(receive(peerWithSamples(5), { underway: 12, skewTolerance: 10 })?.charged).toBe(0)
  })

  test('is charged up to two seconds; more means that several clocks stand behind one address', () => {
    expect(receive(peerWithSamples(5), { underway: 2_002 })?.charged).toBe(2_000)
    expect(receive(peerWithSamples(5), { underway: 2_003 })?.charged).toBe(0)
  })

  test('can use up all that was left', () => {
    const deadline = receive(peerWithSamples(5), { relative: 200, underway: 302 })
    expect(deadline).toMatchObject({ remaining: -100, charged: 300 })
  })

  test('is not charged without a history', () => {
    expect(receive(undefined, { underway: 302 })).toMatchObject({ remaining: 5_000, charged: 0, skew: 302 })
  })
})

describe('several clocks behind one address', () => {
  test('are never charged for being minutes apart', () => {
    const peer = new PeerClock()
    for (let message = 0; message < 300; message += 1) {
      const ahead = [0, 5 * minute, -7 * minute][message % 3] ?? 0
      expect(receive(peer, { ahead, at: start + message * 50 })?.charged).toBe(0)
    }
  })

  test('waiting is still charged to the one that is furthest ahead', () => {
    const peer = new PeerClock()
    for (let message = 0; message < 10; message += 1) receive(peer, { ahead: (message % 2) * 5 * minute })
    expect(receive(peer, { ahead: 5 * minute, underway: 302 })?.charged).toBe(300)
    expect(receive(peer, { ahead: 0, underway: 302 })?.charged).toBe(0)
  })
})

describe('a clock that is set', () => {
  test('anew is known anew after two minutes', () => {
    const peer = peerWithSamples(5)
    expect(receive(peer, { ahead: -1_000, at: start + minute })?.charged).toBe(1_000)
    for (let message = 0; message < 5; message += 1) {
      receive(peer, { ahead: -1_000, at: start + minute + message })
    }
    const later = receive(peer, { ahead: -1_000, at: start + 2 * minute + 1 })
    expect(later?.charged).toBe(0)
  })

  test('forward is believed at once', () => {
    const peer = peerWithSamples(5)
    expect(receive(peer, { ahead: 1_000 })?.charged).toBe(0)
    expect(receive(peer, { ahead: 1_000, underway: 302 })?.charged).toBe(300)
  })

  test('back here does not freeze the history', () => {
    const peer = peerWithSamples(5)
    const earlier = start - 60 * minute
    receive(peer, { at: earlier })
    for (const passed of [minute, 2 * minute]) receive(peer, { at: earlier + passed, ahead: -500 })
    expect(receive(peer, { at: earlier + 2 * minute, ahead: -500 })?.charged).toBe(0)
  })

  test('is forgotten after two silent minutes, and nothing is charged until five messages are known', () => {
    const peer = peerWithSamples(5)
    expect(receive(peer, { at: start + 2 * minute, underway: 302 })?.charged).toBe(0)
    expect(receive(peer, { at: start + 2 * minute, underway: 2 })?.charged).toBe(0)
    expect(receive(peer, { at: start + 2 * minute, underway: 302 })?.charged).toBe(0)
  })

  test('remembers the window before the present one', () => {
    const peer = peerWithSamples(5)
    expect(receive(peer, { at: start + minute + 1, underway: 302 })?.charged).toBe(300)
  })
})

describe('a warning about skew', () => {
  test('is due once a peer and minute', () => {
    const peer = peerWithSamples(5, { ahead: -1_000 })
    expect(peer.takeWarning(start)).toBe(1_002)
    expect(peer.takeWarning(start + 1)).toBeUndefined()
    expect(peer.takeWarning(start + minute - 1)).toBeUndefined()
    expect(peer.takeWarning(start + minute)).toBe(1_002)
  })

  test('is due from 20 ms on, in either direction', () => {
    expect(peerWithSamples(5, { underway: 19 }).takeWarning(start)).toBeUndefined()
    expect(peerWithSamples(5, { underway: 20 }).takeWarning(start)).toBe(20)
    expect(peerWithSamples(5, { ahead: 22 }).takeWarning(start)).toBe(-20)
  })

  test('is not due before five messages: the first may have waited', () => {
    expect(peerWithSamples(4, { ahead: -1_000 }).takeWarning(start)).toBeUndefined()
    expect(new PeerClock().takeWarning(start)).toBeUndefined()
  })
})

test('a clock reading names what was charged and the smallest transit lately seen', () => {
  const peer = new PeerClock()
  for (const transit of [5, 4, 3, 4, 5]) peer.observe(transit, start)
  expect(peer.observe(103, start)).toEqual({ charged: 100, skew: 3 })
})

describe('the clocks of all peers', () => {
  test('stay bounded with a hundred thousand of them', () => {
    const clocks = new PeerClocks()
    for (let peer = 0; peer < 100_000; peer += 1) {
      clocks.of(`10.0.${peer >> 8}.${peer & 255}`)
      if (clocks.size > 1_024) break
    }
    expect(clocks.size).toBeLessThanOrEqual(1_024)
    expect(clocks.size).toBeGreaterThan(500)
  })

  test('keep a peer that is in use while others come and go', () => {
    const clocks = new PeerClocks({ maxPeers: 8 })
    const steady = clocks.of('steady')
    for (let peer = 0; peer < 1_000; peer += 1) {
      clocks.of(`passing-${peer}`)
      expect(clocks.of('steady')).toBe(steady)
      expect(clocks.size).toBeLessThanOrEqual(8)
    }
  })

  test('count a peer once', () => {
    const clocks = new PeerClocks({ maxPeers: 4 })
    for (const peer of ['a', 'b', 'c', 'a', 'c']) clocks.of(peer)
    expect(clocks.size).toBe(3)
  })

  test('forget a peer that is not', () => {
    const clocks = new PeerClocks({ maxPeers: 8 })
    const silent = clocks.of('silent')
    for (let peer = 0; peer < 8; peer += 1) clocks.of(`passing-${peer}`)
    expect(clocks.of('silent')).not.toBe(silent)
  })

  test('are named by any string', () => {
    const clocks = new PeerClocks()
    expect(clocks.of('__proto__')).toBe(clocks.of('__proto__'))
    expect(clocks.of('constructor')).not.toBe(clocks.of('__proto__'))
  })

  test.each([0, 1, -5, 2.5, NaN, Infinity])('a maxPeers of %d is refused by name', (maxPeers) => {
    expect(() => new PeerClocks({ maxPeers })).toThrow(/maxPeers/)
  })
})
