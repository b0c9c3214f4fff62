import {
  baggageEntryMetadataFromString,
  defaultTextMapSetter,
  propagation,
  ROOT_CONTEXT,
} from '@opentelemetry/api'
import { expect, test } from 'vitest'
import { budgetBaggageIn, DeadlinePropagator } from '../src/index.ts'

function injected(entries: Parameters<typeof propagation.createBaggage>[0]): unknown {
  using propagator = new DeadlinePropagator()
  const carrier = {}
  propagator.inject(
    propagation.setBaggage(ROOT_CONTEXT, propagation.createBaggage(entries)),
    carrier,
    defaultTextMapSetter,
  )
  return carrier
}

const halfAnEmoji = '😀'.slice(0, 1)

test('an entry that was cut in the midst of an emoji is not sent, and those beside it are', () => {
  const carrier = injected({
    name: { value: `Ann ${halfAnEmoji}` },
    [halfAnEmoji]: { value: '1' },
    user: { value: '7' },
  })
  expect(carrier).toEqual({ baggage: 'user=7' })
})

test.each(['a\r\nset-cookie: b', 'a\u0000', 'é', '名'])(
  'properties %j, which no header may have, are not sent',
  (text) => {
    const carrier = injected({ user: { value: '7', metadata: baggageEntryMetadataFromString(text) } })
    expect(carrier).toEqual({ baggage: 'user=7' })
  },
)

test('entries with the names of what objects inherit are entries like others, and touch no prototype', () => {
  using propagator = new DeadlinePropagator()
  const header = '__proto__=1,constructor=2,deadline.origin=gateway'
  const extracted = propagator.extract(
    ROOT_CONTEXT,
    { baggage: header },
    {
      keys: () => ['baggage'],
      get: (carrier: { readonly baggage: string }, key) => (key === 'baggage' ? carrier.baggage : undefined),
    },
  )
  const baggage = propagation.getBaggage(extracted)
  expect(baggage?.getEntry('__proto__')?.value).toBe('1')
  expect(baggage?.getEntry('constructor')?.value).toBe('2')
  expect(baggage?.getEntry('toString')).toBeUndefined()
  expect(budgetBaggageIn(extracted)).toEqual({ origin: 'gateway' })
  expect(Object.hasOwn(Object.prototype, 'value')).toBe(false)
})
