import { expect, test } from 'vitest'
import { isAskedForNow } from '../src/undici-asker.ts'

const onDrain = Symbol('onDrain')
const pools = {
  [onDrain]: (): boolean => isAskedForNow(),
  older: function onDrain(): boolean {
    return isAskedForNow()
  },
}

test('a request is asked for now if one of the functions of undici that ask is on the stack', () => {
  const request = (): boolean => isAskedForNow()
  expect(request()).toBe(true)
  expect(isAskedForNow()).toBe(false)
})

test('a request that a pool makes from its queue is not, whoever ends another one', () => {
  const request = (free: () => boolean): boolean => free()
  expect(request(() => pools[onDrain]())).toBe(false)
  expect(request(() => pools.older())).toBe(false)
})

test('stacks look as before to everybody else', () => {
  const { prepareStackTrace, stackTraceLimit } = Error
  isAskedForNow()
  expect(Error.prepareStackTrace).toBe(prepareStackTrace)
  expect(Error.stackTraceLimit).toBe(stackTraceLimit)
  expect(new Error('text').stack).toContain('propagation-asker.test.ts')
})
