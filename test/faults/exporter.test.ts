import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { RawClient } from './raw-client.ts'
import { Service } from './service.ts'

vi.setConfig({ testTimeout: 90_000 })

/** Two busy cores may be late by this much. */
const tolerance = 2_500

interface Collector extends AsyncDisposable {
  readonly port: number
  /** How many connections it has had; undefined if it cannot know. */
  readonly tried?: () => number
}

/** Takes every connection, and never answers. */
async function blackHole(): Promise<Collector> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).resume()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    tried: () => sockets.size,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

async function nobody(): Promise<Collector> {
  return { port: await freePort(), async [Symbol.asyncDispose]() {} }
}

test.each([
  ['takes everything and never answers', blackHole],
  ['is not there', nobody],
])(
  'a collector of telemetry that %s delays no request, and no end of the process for long',
  async (_what, start) => {
    await using collector = await start()
    const environment = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
      OTEL_TRACES_EXPORTER: 'otlp',
      OTEL_METRICS_EXPORTER: 'otlp',
      OTEL_LOGS_EXPORTER: 'none',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      // a process waits for exports that are under way: in the proportion of the defaults, 60 s and 10 s
      OTEL_METRIC_EXPORT_INTERVAL: '1800',
      OTEL_METRIC_EXPORT_TIMEOUT: '300',
      OTEL_EXPORTER_OTLP_TIMEOUT: '300',
    }
    const run = { nodeArguments: ['--import', '@timebudget/otel/register'], environment }
    await using leaf = await Service.start({ framework: 'fastify' }, run)
    const upstream = `http://127.0.0.1:${leaf.port}`
    await using entry = await Service.start({ framework: 'express', upstream }, run)
    using client = await RawClient.to({ port: entry.port })
    const count = 40
    for (let asked = 1; asked <= count; asked += 1) {
      const began = performance.now()
      client.get('/slow?for=20', { 'X-Request-Timeout-Ms': 10_000 })
      expect((await client.answered(asked)).at(-1)).toMatchObject({ status: 200, body: 'done' })
      expect(performance.now() - began).toBeLessThan(tolerance)
    }
    const began = performance.now()
    client.get('/silent', { 'X-Request-Timeout-Ms': 500 })
    expect((await client.answered(count + 1)).at(-1)).toMatchObject({ status: 504 })
    expect(performance.now() - began).toBeLessThan(500 + tolerance)
    if (collector.tried !== undefined) expect(collector.tried()).toBeGreaterThan(0)

    client.socket.end()
    for (const service of [entry, leaf]) {
      service.process.kill('SIGTERM')
      const stopped = performance.now()
      expect(await Promise.race([service.ended, sleep(30_000, 'still there')])).toBe(0)
      // the grace, and five seconds for what is left to be exported
      expect(performance.now() - stopped).toBeLessThan(1_000 + 5_000 + tolerance)
      expect(service.all('crashed')).toEqual([])
    }
  },
)
