import http, { Agent, type ClientRequest } from 'node:http'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { expect, test } from 'vitest'
import { DeadlinePropagator } from '../src/index.ts'
import { recordingServer } from './recording-server.ts'

/** What node:http takes and its types do not. */
type Options = Readonly<Record<string, unknown>>

function get(options: Options): Promise<void> {
  return runWithDeadline(
    Deadline.after(4_000),
    () =>
      new Promise((resolve, reject) => {
        const asked = http.get(options as http.RequestOptions, (response) =>
          response.resume().on('end', resolve),
        )
        asked.on('error', reject)
      }),
  )
}

test('a request that has written its headers down already is left alone, without a warning', async () => {
  await using server = await recordingServer()
  using _propagator = new DeadlinePropagator({ inject: true })
  const warnings: Error[] = []
  const listen = (warning: Error): void => void warnings.push(warning)
  process.on('warning', listen)
  const { port } = server
  await get({ port, path: '/list', headers: ['Host', 'a', 'x-own', '1'] })
  await get({ port, path: '/expecting', headers: { expect: '100-continue' } })
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', listen)
  expect(warnings).toEqual([])
  expect(server.values('/list', 'x-own')).toEqual(['1'])
  for (const path of ['/list', '/expecting']) expect(server.values(path, 'x-request-timeout-ms')).toEqual([])
})

test('a host that is no text is what Node makes of it', async () => {
  await using server = await recordingServer()
  using _propagator = new DeadlinePropagator({ inject: ['127.0.0.1'] })
  await get({ hostname: '127.0.0.1', host: {}, port: server.port, path: '/odd' })
  expect(server.values('/odd', 'x-request-timeout-ms')).toHaveLength(1)
})

test('a port is known by the Host header, unless that is of another host', async () => {
  await using server = await recordingServer()
  const { port } = server
  using _propagator = new DeadlinePropagator({ inject: [`127.0.0.1:${port}`], trust: false })
  await get({ host: '127.0.0.1', port, path: '/own' })
  await get({ host: '127.0.0.1', port, path: '/other', headers: { host: `a.internal:${port}` } })
  expect(server.values('/own', 'x-request-timeout-ms')).toHaveLength(1)
  expect(server.values('/other', 'x-request-timeout-ms')).toEqual([])
})

test('once stopped it writes nothing, though somebody has wrapped what it wrapped', async () => {
  await using server = await recordingServer()
  const agents = Agent.prototype as unknown as {
    addRequest(request: ClientRequest, ...rest: readonly unknown[]): void
  }
  const before = agents.addRequest
  const propagator = new DeadlinePropagator({ inject: true })
  const ours = agents.addRequest
  agents.addRequest = function later(...args) {
    ours.apply(this, args)
  }
  propagator.stop()
  await get({ port: server.port, path: '/stopped' })
  agents.addRequest = before
  expect(server.values('/stopped', 'x-request-timeout-ms')).toEqual([])
})
