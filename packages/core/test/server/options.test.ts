import { describe, expect, test } from 'vitest'
import { deadlineOf, resolveServerOptions, type ServerOptions, withDeadline } from '@timebudget/core/server'

describe('the options of a server', () => {
  test('have these defaults', () => {
    const resolved = resolveServerOptions()
    expect(resolved).toMatchObject({
      budget: 5000,
      max: 300_000,
      floor: 0,
      reserve: 0,
      ambient: true,
      skewTolerance: 50,
      malformed: 'ignore',
      late: 'replace',
      serverTiming: 'peers',
      onExceeded: undefined,
      shutdown: undefined,
    })
    expect(resolved.accept).toEqual([
      'x-request-deadline',
      'x-request-timeout-ms',
      'grpc-timeout',
      'connect-timeout-ms',
      'x-envoy-expected-rq-timeout-ms',
    ])
    expect(Object.isFrozen(resolved)).toBe(true)
  })

  test('may be given as undefined, which means the default', () => {
    const names = [
      'default',
      'max',
      'floor',
      'accept',
      'ambient',
      'trust',
      'late',
      'serverTiming',
      'shutdownSignal',
    ] as const
    const unset: ServerOptions = Object.fromEntries(names.map((name) => [name, undefined]))
    const { trust: _trust, ...resolved } = resolveServerOptions(unset)
    const { trust: _otherTrust, ...defaults } = resolveServerOptions()
    expect(resolved).toEqual(defaults)
  })

  test('read durations as numbers and as text', () => {
    const options: ServerOptions = {
      default: '800ms',
      max: '2m',
      floor: '1.5s',
      reserve: 20,
      skewTolerance: '1s',
    }
    expect(resolveServerOptions(options)).toMatchObject({
      budget: 800,
      max: 120_000,
      floor: '1.5s',
      reserve: 20,
      skewTolerance: 1000,
    })
  })

  test('let nobody ask for a default beyond the maximum, and keep their own within it', () => {
    const resolve = (options: ServerOptions) => () => resolveServerOptions(options)
    expect(resolve({ default: '10s', max: '2s' })).toThrow(
      new TypeError('default: 10000 ms are more than max, 2000 ms'),
    )
    expect(resolve({ default: '10m' })).toThrow(/^default: .* max/)
    expect(resolve({ max: '2s' })().budget).toBe(2000)
    expect(resolve({ default: '1.5s', max: 1500.5 })()).toMatchObject({ budget: 1500, max: 1500.5 })
    expect(resolve({ default: '2s', max: '2s' })().budget).toBe(2000)
  })

  const wrong: readonly (readonly [string, Record<string, unknown>])[] = [
    ...['default', 'max', 'floor', 'reserve', 'skewTolerance', 'shutdownGrace'].flatMap((name) =>
      [Number.NaN, -1, 'soon', '', null, {}, true]
        // an object may be a learned floor, and null asks for the default
        .filter((value) => !(name === 'floor' && typeof value === 'object') && value !== null)
        .map((value) => [name, { [name]: value }] as const),
    ),
    ['timeout', { timeout: '5s' }],
    ['accept', { accept: 'x-request-deadline' }],
    ['accept', { accept: ['x-deadline'] }],
    ['accept', { accept: ['toString'] }],
    ['ambient', { ambient: 'no' }],
    ['trust', { trust: 'always' }],
    ['malformed', { malformed: 'throw' }],
    ['late', { late: true }],
    ['serverTiming', { serverTiming: 'all' }],
    ['onExceeded', { onExceeded: 'sorry' }],
    ['shutdownSignal', { shutdownSignal: 'SIGTERM' }],
  ]
  test.each(wrong)('law 6: %s is refused by its name if it is unknown or unreadable: %j', (name, options) => {
    const resolve = (): unknown => withDeadline(() => {}, options)
    expect(resolve).toThrow(TypeError)
    expect(resolve).toThrow(new RegExp(`^${name}: `))
  })

  test('belong to the one who calls: changing a list later changes nothing', () => {
    const accept: ('grpc-timeout' | 'connect-timeout-ms')[] = ['grpc-timeout']
    const resolved = resolveServerOptions({ accept })
    accept.push('connect-timeout-ms')
    expect(resolved.accept).toEqual(['grpc-timeout'])
  })

  test('leave a request that was never opened without a deadline', () => {
    expect(deadlineOf({} as never)).toBeUndefined()
  })
})
