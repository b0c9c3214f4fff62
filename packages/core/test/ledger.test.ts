import { describe, expect, test } from 'vitest'
import { Deadline, type Ledger, type LedgerEntry, startOperation } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'

function opened(): { readonly clock: ManualClock; readonly ledger: Ledger; open(name: string): LedgerEntry } {
  const clock = new ManualClock()
  const ledger = Deadline.after('1m', { clock }).ledger
  const opening = { parent: undefined, remaining: 60_000, granted: 1_000, floor: 0, reserve: 0 }
  return { clock, ledger, open: (name) => ledger.open({ name, ...opening }) }
}

describe('a ledger', () => {
  test('keeps the first end of an operation', () => {
    const { clock, ledger, open } = opened()
    const entry = open('retrieve')
    expect(entry).toMatchObject({ spent: undefined, outcome: undefined })
    clock.advance(10)
    ledger.close(entry, 'ok')
    clock.advance(10)
    ledger.close(entry, 'error')
    expect(ledger.entries).toMatchObject([{ spent: 10, outcome: 'ok' }])
  })

  test('counts from the start of the request, whoever asks for it first', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after('1m', { clock })
    clock.advance(250)
    const child = deadline.child({ timeout: 100 }).child({})
    expect(child.ledger).toBe(deadline.ledger)
    startOperation('late', { deadline: child }).end()
    expect(deadline.ledger.entries).toMatchObject([{ start: 250, remaining: 100 }])
  })

  test('keeps 1,024 operations, those that came first, and counts the others', () => {
    const { ledger, open } = opened()
    for (let number = 0; number < 1_030; number += 1) ledger.close(open(`op${number}`), 'ok')
    expect(ledger.entries).toHaveLength(1_024)
    expect(ledger.entries.at(-1)?.name).toBe('op1023')
    expect(ledger.dropped).toBe(6)
  })

  test('lets operations beyond that run as any other', async () => {
    const { ledger, open } = opened()
    for (let number = 0; number < 1_024; number += 1) open('early')
    const entry = open('late')
    ledger.close(entry, 'ok')
    expect(entry.outcome).toBe('ok')
    expect(ledger.dropped).toBe(1)
  })

  test('becomes JSON as the list of its entries', () => {
    const { ledger, open } = opened()
    open('retrieve')
    expect(JSON.parse(JSON.stringify({ ledger }))).toMatchObject({ ledger: [{ path: 'retrieve' }] })
  })
})

describe('what a peer reports', () => {
  test('stands under the operation that called it, in the time of the request', () => {
    const { clock, ledger, open } = opened()
    clock.advance(100)
    const call = open('call')
    ledger.addPeer(call, [
      { path: 'db', start: 5, spent: 20, outcome: 'ok' },
      { path: 'db.lock', start: 6, spent: undefined, outcome: undefined },
    ])
    expect(ledger.entries.slice(1)).toEqual([
      {
        name: 'db',
        path: 'call.db',
        start: 105,
        remaining: 59_995,
        granted: 995,
        floor: 0,
        reserve: 0,
        spent: 20,
        outcome: 'ok',
        source: 'peer',
      },
      expect.objectContaining({
        name: 'lock',
        path: 'call.db.lock',
        start: 106,
        spent: undefined,
        source: 'peer',
      }),
    ])
  })

  test('of more time than there is never leaves less than nothing', () => {
    const { ledger, open } = opened()
    ledger.addPeer(open('call'), [{ path: 'db', start: 86_400_000, spent: 1, outcome: 'ok' }])
    expect(ledger.entries.at(-1)).toMatchObject({ remaining: 0, granted: 0 })
  })

  test('law 11: in any number takes no more room than our own', () => {
    const { ledger, open } = opened()
    const call = open('call')
    const report = { path: 'db', start: 0, spent: 1, outcome: 'ok' } as const
    for (let answer = 0; answer < 100; answer += 1) ledger.addPeer(call, Array(64).fill(report))
    expect(ledger.entries).toHaveLength(1_024)
    expect(ledger.dropped).toBe(6_400 - 1_023)
  })
})
