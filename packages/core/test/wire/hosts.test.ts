import { expect, test } from 'vitest'
import { type HostRule, hostTest, isPrivateHost } from '../../src/wire/hosts.ts'

test.each([
  'localhost',
  'LOCALHOST',
  'api.localhost',
  '127.0.0.1',
  '127.9.9.9',
  '2130706433', // 127.0.0.1 in one number
  '10.1.2.3',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.0.1',
  '169.254.169.254',
  '[::1]',
  '[fd12::1]',
  '[fc00::1]',
  '[fe80::1]',
  '[febf::1]',
  '[::ffff:10.0.0.1]',
])('%s is private', (host) => {
  expect(isPrivateHost(new URL(`http://${host}:8080/`))).toBe(true)
})

test.each([
  'example.com',
  'localhost.example.com',
  'notlocalhost',
  '10.example.com',
  '127.0.0.1.example.com',
  '8.8.8.8',
  '172.15.0.1',
  '172.32.0.1',
  '192.169.0.1',
  '11.0.0.1',
  '[2001:db8::1]',
  '[::]',
  '[fec0::1]',
  '[::ffff:8.8.8.8]',
  '[fd::1]',
])('%s is not', (host) => {
  expect(isPrivateHost(new URL(`http://${host}/`))).toBe(false)
})

test.each<{ rule: HostRule; matching: string[]; other: string[] }>([
  { rule: true, matching: ['a.example', '10.0.0.1'], other: [] },
  { rule: false, matching: [], other: ['a.example', '10.0.0.1'] },
  { rule: [], matching: [], other: ['a.example'] },
  {
    rule: ['API.example'],
    matching: ['api.example', 'api.example:8080'],
    other: ['x.api.example', 'xapi.example'],
  },
  { rule: ['api.example:8080'], matching: ['api.example:8080'], other: ['api.example', 'api.example:80'] },
  {
    rule: ['*.internal'],
    matching: ['a.internal', 'a.b.internal', 'a.internal:99'],
    other: ['internal', 'xinternal', 'a.internal.example', 'a.internal@evil.example'],
  },
  { rule: ['[::1]:80', '[::2]'], matching: ['[::2]:9'], other: ['[::3]'] },
  { rule: (url) => url.port === '9', matching: ['a.example:9'], other: ['a.example'] },
])('the rule $rule matches just its hosts', ({ rule, matching, other }) => {
  const matches = hostTest(rule, 'propagateTo')
  expect(matching.filter((host) => !matches(new URL(`http://${host}/`)))).toEqual([])
  expect(other.filter((host) => matches(new URL(`http://${host}/`)))).toEqual([])
})

test('a rule of another kind throws a TypeError that names the option', () => {
  expect(() => hostTest([''], 'inject')).toThrow(
    new TypeError('inject: expected true, false, a list of host patterns or a function of the URL'),
  )
})
