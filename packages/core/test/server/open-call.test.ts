import { Deadline, type RequestFinished, requestFinished, runWithDeadline } from '@timebudget/core'
import { type CallServerOptions, OpenCall, resolveCallOptions } from '@timebudget/core/server'
import { ManualClock } from '@timebudget/core/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

const finished: RequestFinished[] = []
let unsubscribe: () => void
beforeEach(() => {
  finished.length = 0
  unsubscribe = requestFinished.subscribe((event) => void finished.push(event))
})
afterEach(() => unsubscribe())

interface Opening {
  readonly headers?: Readonly<Record<string, string>>
  readonly options?: CallServerOptions
}

function open({ headers = { 'grpc-timeout': '1000m' }, options }: Opening = {}) {
  const clock = new ManualClock()
  const call = new OpenCall({ path: '/index.Search/Ask', headers }, resolveCallOptions({ ...options, clock }))
  const told: unknown[] = []
  call.begin((reason) => told.push(reason.code))
  return { call, clock, told, signal: call.deadline.signal }
}

describe('a call whose client leaves', () => {
  test('a moment before the deadline that it brought ends as that does, at its deadline', () => {
    const { call, clock, told, signal } = open()
    clock.advance(980)
    call.clientGone('h2_rst_8')
    expect([signal.aborted, told, finished]).toEqual([false, [], []])
    clock.advance(20)
    expect(signal.reason).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(told).toEqual(['DEADLINE_EXCEEDED'])
    expect(finished).toMatchObject([{ outcome: 'deadline_exceeded', goneBy: undefined }])
  })

  test('then, and is answered in what is left, has missed the deadline all the same', () => {
    const { call, clock, signal } = open()
    clock.advance(980)
    call.clientGone('h2_rst_8')
    expect(call.finish('ok')).toBe(true)
    expect(signal.aborted).toBe(false)
    expect(finished).toMatchObject([{ outcome: 'deadline_exceeded' }])
  })

  const others: Readonly<Record<string, Opening & { readonly left: number }>> = {
    'with more than the tolerance left': { left: 51 },
    'with more left than a tolerance of its server': { options: { skewTolerance: 10 }, left: 20 },
    'without having brought a deadline': { headers: {}, options: { default: '1s' }, left: 20 },
    'before what it was given, having asked for more': {
      headers: { 'grpc-timeout': '5S' },
      options: { max: '1s' },
      left: 20,
    },
  }
  test.each(Object.entries(others))('%s has left for itself, at once', (_name, { left, ...opening }) => {
    const { call, clock, told, signal } = open(opening)
    clock.advance(1_000 - left)
    call.clientGone('h2_rst_8')
    expect(signal.reason).toMatchObject({ code: 'CLIENT_CLOSED' })
    expect(told).toEqual(['CLIENT_CLOSED'])
    expect(finished).toMatchObject([{ outcome: 'client_closed', goneBy: 'h2_rst_8' }])
  })

  test('within a request leaves it to that request to say why, if the deadline is near', () => {
    const clock = new ManualClock()
    const ends = [
      (outer: Deadline) => outer.cancel(new Error('the client of the request went away')),
      () => clock.advance(20),
    ].map((end) => {
      const outer = Deadline.after(1_000, { clock })
      const call = runWithDeadline(
        outer,
        () => new OpenCall({ path: '/', headers: {} }, resolveCallOptions()),
      )
      call.begin(() => undefined)
      clock.advance(980)
      call.clientGone('cancelled')
      const before = call.reason
      end(outer)
      return [before, call.reason?.code]
    })
    expect(ends).toEqual([
      [undefined, 'CANCELLED'],
      [undefined, 'DEADLINE_EXCEEDED'],
    ])
  })
})
