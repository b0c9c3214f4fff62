import { afterEach, expect, test, vi } from 'vitest'
import { findProgram, requireOrSkip } from './support/requirements.ts'

class Skipped extends Error {}

const context = {
  skip(note: string): never {
    throw new Skipped(note)
  },
}

afterEach(() => vi.unstubAllEnvs())

test('a program on the PATH is found, one that does not exist is not', () => {
  expect(findProgram('npm')).toMatch(/npm$/)
  expect(findProgram('no-such-program')).toBeUndefined()
})

test('what a test needs and finds is handed to it', () => {
  expect(requireOrSkip(context, '/usr/bin/redis-server', 'redis')).toBe('/usr/bin/redis-server')
})

test('what is missing skips the test with its reason', () => {
  vi.stubEnv('CI', undefined)
  expect(() => requireOrSkip(context, undefined, 'install redis')).toThrow(new Skipped('install redis'))
})

test('what is missing under CI fails the test', () => {
  vi.stubEnv('CI', 'true')
  expect(() => requireOrSkip(context, undefined, 'install redis')).toThrow('missing under CI: install redis')
})
