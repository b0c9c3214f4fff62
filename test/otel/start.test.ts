import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { nodeMatrix } from '../support/node-matrix.ts'
import { requireOrSkip } from '../support/requirements.ts'
import { otlpReceiver } from './support/otlp-receiver.ts'
import { TracedService } from './support/traced-service.ts'

vi.setConfig({ testTimeout: 120_000 })

const root = fileURLToPath(new URL('../../', import.meta.url))
const newerSdk = `${root}node_modules/.cache/timebudget-otel3`
const jsonTo = (url: string): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
})

describe('--import @timebudget/otel/register gives an application of ES modules its spans', () => {
  for (const { version, path } of nodeMatrix()) {
    const line = Number.parseInt(version, 10) >= 22 ? 3 : 2
    test(`on Node ${version}, with its line of the SDK`, async (context) => {
      const node = requireOrSkip(context, path, 'node scripts/install-node-matrix.mjs')
      if (line === 3)
        requireOrSkip(context, existsSync(newerSdk) || undefined, 'node scripts/install-apart.mjs')
      const receiver = await otlpReceiver()
      const service = await TracedService.start({ framework: 'esm', line, node, env: jsonTo(receiver.url) })

      await fetch(service.url, { headers: { 'x-request-timeout-ms': '5000' } })

      const spans = await receiver.until((come) => come.length === 2)
      const server = spans.find(({ kind }) => kind === 2)
      const operation = spans.find(({ name }) => name === 'quick')
      expect(server?.attributes).toMatchObject({
        'deadline.budget.limit_ms': 5000,
        'deadline.source': 'header',
        'deadline.outcome': 'ok',
      })
      expect(operation).toMatchObject({ parentSpanId: server?.spanId, traceId: server?.traceId })
      expect(service.all('warned')).toEqual([])
    })
  }
})

describe('an exporter that cannot reach anybody', () => {
  test('slows no request down, fails none, and takes no more memory the longer it lasts', async () => {
    const receiver = await otlpReceiver()
    const start = (url: string): Promise<TracedService> => {
      const env = { ...jsonTo(url), OTEL_BSP_MAX_QUEUE_SIZE: '256', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '128' }
      return TracedService.start({ framework: 'node', env })
    }
    const [reached, unreached, silent] = await Promise.all([
      start(receiver.url),
      start(`http://127.0.0.1:${await freePort()}`),
      start(await silentServer()),
    ])
    const services = [reached, unreached, silent]

    const times = services.map((): number[] => [])
    for (let round = 0; round < 100; round += 1) {
      for (const [index, service] of services.entries()) times[index]?.push(await timeOf(service))
    }
    const [usual = 0, ...others] = times.map(median)
    // three times, for the noise of a busy machine: an exporter that is waited for takes its timeout of 10 s
    for (const other of others) expect(other).toBeLessThan(3 * usual + 5)

    for (const service of [unreached, silent]) {
      // more spans than are kept
      await load(service, 400)
      const full = await service.memory()
      await load(service, 800)
      expect((await service.memory()) - full).toBeLessThan(4 * 2 ** 20)
      expect(service.all('crashed')).toEqual([])
    }
  })

  test('does not keep a process from ending: shutdown gives up', async () => {
    const told = await run(
      `
      import { startTelemetry } from '@timebudget/otel'
      import { operation } from '@timebudget/core'
      const telemetry = startTelemetry()
      await operation('work', {}, async () => {})
      const before = performance.now()
      await telemetry.shutdown('200ms')
      console.log(JSON.stringify({ took: performance.now() - before }))
      process.exit()
      `,
      jsonTo(await silentServer()),
    )

    expect(JSON.parse(told.stdout).took).toBeLessThan(5_000)
  })
})

test("an SDK of one's own, set up as the package's README prints it, exports operations and metrics", async () => {
  const receiver = await otlpReceiver()
  const readme = readFileSync(`${root}packages/otel/README.md`, 'utf8')
  const setUp = /```ts\n(import \{ metrics \}.*?)```/s.exec(readme)?.[1]

  const { stdout, stderr } = await run(
    `
    ${setUp}
    import { hasSubscribers } from 'node:diagnostics_channel'
    import { operation } from '@timebudget/core'
    await operation('work', { timeout: '2s' }, async () => {})
    console.log(hasSubscribers('timebudget:work.late'))
    await sdk.shutdown()
    `,
    { ...jsonTo(receiver.url), OTEL_METRICS_EXPORTER: 'otlp' },
  )

  expect(receiver.spans).toMatchObject([{ name: 'work', attributes: { 'deadline.outcome': 'ok' } }])
  // nothing but metrics listens to that
  expect([stdout.trim(), stderr]).toEqual(['true', ''])
})

describe('startTelemetry', () => {
  test('gives what is left to the exporter when it is shut down', async () => {
    const receiver = await otlpReceiver()

    await run(
      `
      import { startTelemetry } from '@timebudget/otel'
      import { operation } from '@timebudget/core'
      const telemetry = startTelemetry({ serviceName: 'batch' })
      await operation('work', { timeout: '2s' }, async () => {})
      await telemetry.shutdown()
      `,
      { ...jsonTo(receiver.url), OTEL_BSP_SCHEDULE_DELAY: '60000' },
    )

    expect(receiver.spans).toMatchObject([
      { service: 'batch', name: 'work', attributes: { 'deadline.budget.granted_ms': 2000 } },
    ])
  })

  test('with the register entry, does so when the process has nothing left to do', async () => {
    const receiver = await otlpReceiver()

    await run(
      `
      import { operation } from '@timebudget/core'
      await operation('work', { timeout: '2s' }, async () => {})
      `,
      { ...jsonTo(receiver.url), OTEL_BSP_SCHEDULE_DELAY: '60000' },
      ['--import', '@timebudget/otel/register'],
    )

    expect(receiver.spans.map(({ name }) => name)).toEqual(['work'])
  })

  test.for([
    {
      how: 'a signal ends the process',
      program: '',
      ends: { code: null, signal: 'SIGTERM' },
    },
    {
      how: 'the application ends itself',
      program: `
        import { telemetry } from '@timebudget/otel/register'
        process.once('SIGTERM', async () => {
          await operation('farewell', {}, async () => {})
          await telemetry.shutdown()
          process.exit(3)
        })
      `,
      ends: { code: 3, signal: null },
    },
  ])('with the register entry, does so when $how', async ({ program, ends }) => {
    const receiver = await otlpReceiver()

    const ended = await run(
      `
      import { operation } from '@timebudget/core'
      ${program}
      setInterval(() => {}, 1_000)
      await operation('work', { timeout: '2s' }, async () => {})
      process.kill(process.pid, 'SIGTERM')
      `,
      { ...jsonTo(receiver.url), OTEL_BSP_SCHEDULE_DELAY: '60000' },
      ['--import', '@timebudget/otel/register'],
    ).catch((error: unknown) => error)

    expect(ended).toMatchObject(ends)
    expect(receiver.spans.map(({ name }) => name)).toEqual(program === '' ? ['work'] : ['work', 'farewell'])
  })

  test('does so too without that entry', async () => {
    const receiver = await otlpReceiver()

    await run(
      `
      import { startTelemetry } from '@timebudget/otel'
      import { operation } from '@timebudget/core'
      startTelemetry()
      await operation('work', { timeout: '2s' }, async () => {})
      `,
      { ...jsonTo(receiver.url), OTEL_BSP_SCHEDULE_DELAY: '60000' },
    )

    expect(receiver.spans.map(({ name }) => name)).toEqual(['work'])
  })

  test('ends once, however often it is shut down', async () => {
    const receiver = await otlpReceiver()

    const { stderr } = await run(
      `
      import { startTelemetry } from '@timebudget/otel'
      import { operation } from '@timebudget/core'
      const telemetry = startTelemetry()
      await operation('work', { timeout: '2s' }, async () => {})
      await Promise.all([telemetry.shutdown(), telemetry.shutdown()])
      await operation('late', { timeout: '2s' }, async () => {})
      await telemetry.shutdown()
      `,
      jsonTo(receiver.url),
    )

    expect(receiver.spans.map(({ name }) => name)).toEqual(['work'])
    expect(stderr).toBe('')
  })

  test('hands on what it is told of metrics, and takes the propagator of the SDK inside its own', async () => {
    const told = await run(
      `
      import { context, propagation } from '@opentelemetry/api'
      import { MeterProvider, InMemoryMetricExporter, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
      import { defineEvent, operation } from '@timebudget/core'
      import { startTelemetry } from '@timebudget/otel'
      const exporter = new InMemoryMetricExporter(1)
      const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 60_000 })
      const textMapPropagator = {
        inject: (_, carrier, setter) => setter.set(carrier, 'x-own', 'yes'),
        extract: (given) => given,
        fields: () => ['x-own'],
      }
      startTelemetry({
        metrics: { maxNames: 1, genAi: 'v1.41' },
        sdk: { metricReaders: [reader], textMapPropagator },
      })
      for (const name of ['one', 'two']) await operation(name, { timeout: '1s' }, async () => {})
      defineEvent('timebudget:llm.call.finished').publish(() => ({
        provider: 'openai', url: 'https://api.example.com/v1/chat/completions', outcome: 'ok',
        usage: { estimated: false }, timings: { total: 5 },
      }))
      await reader.forceFlush()
      const all = exporter.getMetrics()[0].scopeMetrics.flatMap(({ metrics }) => metrics)
      const durations = all.find(({ descriptor }) => descriptor.name === 'deadline.operation.duration')
      const carrier = {}
      propagation.inject(context.active(), carrier)
      console.log(JSON.stringify({
        carrier,
        operations: durations.dataPoints.map(({ attributes }) => attributes['deadline.operation']),
        genAi: all.map(({ descriptor }) => descriptor.name).filter((name) => name.startsWith('gen_ai')),
      }))
      process.exit()
      `,
      {},
    )

    expect(JSON.parse(told.stdout)).toEqual({
      carrier: { 'x-own': 'yes' },
      operations: ['one', 'other'],
      genAi: expect.arrayContaining(['gen_ai.client.operation.duration']),
    })
  })

  test('takes the own options of the SDK, and adds the instrumentations that it is given', async () => {
    const told = await run(
      `
      import { startTelemetry } from '@timebudget/otel'
      import { operation } from '@timebudget/core'
      const enabled = []
      const given = {
        setTracerProvider: () => enabled.push('given'), setMeterProvider() {}, setLoggerProvider() {},
        enable() {}, disable() {}, getConfig: () => ({}), setConfig() {},
      }
      const names = []
      const spanProcessors = [{
        onStart() {}, forceFlush: async () => {}, shutdown: async () => {},
        onEnd: (span) => names.push(span.name + ' ' + span.attributes['deadline.outcome']),
      }]
      startTelemetry({ sdk: { instrumentations: [given], spanProcessors } })
      await operation('work', {}, async () => {})
      console.log(JSON.stringify({ enabled, names }))
      `,
      {},
    )

    expect(JSON.parse(told.stdout)).toEqual({ enabled: ['given'], names: ['work ok'] })
  })

  test('a second time warns and starts nothing twice', async () => {
    const receiver = await otlpReceiver()

    const { stderr } = await run(
      `
      import { startTelemetry } from '@timebudget/otel'
      import { operation } from '@timebudget/core'
      const telemetry = startTelemetry()
      startTelemetry()
      await operation('work', {}, async () => {})
      await telemetry.shutdown()
      `,
      jsonTo(receiver.url),
    )

    expect(stderr).toContain('telemetry had been started before')
    expect(receiver.spans.map(({ name }) => name)).toEqual(['work'])
  })

  test('does nothing where the environment says so', async () => {
    const { stdout } = await run(
      `
      import { hasSubscribers } from 'node:diagnostics_channel'
      import { startTelemetry } from '@timebudget/otel'
      await startTelemetry().shutdown()
      console.log(hasSubscribers('timebudget:operation.started'))
      `,
      { OTEL_SDK_DISABLED: 'true' },
    )

    expect(stdout.trim()).toBe('false')
  })

  test('refuses an option that does not exist by its name', async () => {
    await expect(
      run(`import { startTelemetry } from '@timebudget/otel'; startTelemetry({ exporter: 'otlp' })`, {}),
    ).rejects.toThrow(/exporter/)
  })
})

/** Runs a module in a process of its own, where it finds what the repository's root has installed. */
function run(
  code: string,
  env: Readonly<Record<string, string>>,
  options: readonly string[] = [],
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const { NODE_OPTIONS: _unused, ...inherited } = process.env
  return promisify(execFile)(process.execPath, [...options, '--input-type=module', '--eval', code], {
    cwd: root,
    env: { ...inherited, OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none', ...env },
    timeout: 60_000,
  })
}

/** Takes connections and never answers. */
async function silentServer(): Promise<string> {
  const sockets = new Set<{ destroy(): void }>()
  const server = createServer((socket) => sockets.add(socket.on('error', () => {})))
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${port}`
}

async function timeOf(service: TracedService): Promise<number> {
  const before = performance.now()
  const response = await fetch(`${service.url}quick`)
  await response.text()
  expect(response.status).toBe(200)
  return performance.now() - before
}

async function load(service: TracedService, requests: number): Promise<void> {
  let left = requests
  const client = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await timeOf(service)
    }
  }
  await Promise.all(Array.from({ length: 20 }, client))
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0
}
