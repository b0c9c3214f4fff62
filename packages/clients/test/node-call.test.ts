import http from 'node:http'
import https from 'node:https'
import { expect, test } from 'vitest'
import { readNodeCall } from '../src/node-call.ts'

test.each([
  { args: ['http://a.test:81/x?y=1'], url: 'http://a.test:81/x?y=1' },
  { args: [new URL('https://a.test/x'), { method: 'post' }], url: 'https://a.test/x', method: 'POST' },
  { args: ['http://a.test/x', { hostname: 'b.test', port: 82, path: '/z' }], url: 'http://b.test:82/z' },
  { args: [{ host: 'a.test', path: '//b.test/x?y=1?2' }], url: 'http://a.test//b.test/x?y=1?2' },
  { args: [{ hostname: '::1', port: '83' }], url: 'http://[::1]:83/' },
  { args: [{ hostname: 'a.test', host: {} }], url: 'http://a.test/' },
  { args: [{ agent: new https.Agent(), host: 'a.test' }], url: 'https://a.test/' },
  { args: [{ protocol: 'https:', agent: new http.Agent(), host: 'a.test' }], url: 'https://a.test/' },
  { args: [{}], url: 'http://localhost/' },
  { args: [() => undefined], url: 'http://localhost/' },
])('$args is a call to $url', ({ args, url, method = 'GET' }) => {
  const call = readNodeCall(args, 'http:')
  expect([call?.url.href, call?.method]).toEqual([url, method])
})

test('a host that cannot be one is a stranger, not the localhost that is trusted', () => {
  expect(readNodeCall([{ hostname: 'no host' }], 'http:')?.url.hostname).toBe('unreadable.invalid')
})

test('a proxy that is asked for the whole URL stands for the host behind it', () => {
  const asked = { hostname: 'proxy.test', port: 3128, path: 'http://a.test/x' }
  expect(readNodeCall([asked], 'http:')?.url.href).toBe('http://a.test/x')
})

test('a text that is no URL is left to Node', () => {
  expect(readNodeCall(['no url'], 'http:')).toBeUndefined()
})
