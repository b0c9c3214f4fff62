import { once } from 'node:events'
import { metrics } from '@opentelemetry/api'
import { Deadline, operation } from '@timebudget/core'
import { expect, onTestFinished, test, vi } from 'vitest'
import { recordMetrics } from '../src/index.ts'
import { metered } from './metered.ts'

test('into one meter it is recorded once, however often that is asked for, and anew once it has stopped', async () => {
  const warned = once(process, 'warning')
  await using recorded = metered()
  const stopSecond = recordMetrics(recorded.meter)
  const [{ message }] = await warned

  const deadline = Deadline.after('5s')
  onTestFinished(() => deadline.settle())
  await operation('work', { deadline }, async () => {})
  stopSecond()
  await operation('work', { deadline }, async () => {})
  expect(await recorded.value('deadline.operation.duration')).toBe(2)

  recorded.stop()
  const stopAnew = recordMetrics(recorded.meter)
  await operation('work', { deadline }, async () => {})
  stopAnew()
  expect(await recorded.value('deadline.operation.duration')).toBe(3)
  expect(message).toContain('this meter is recorded into already')
})

test('a meter of no SDK is told of, since nothing is handed on to one that comes later', async () => {
  const warned = once(process, 'warning')
  recordMetrics(metrics.getMeter('search'))()
  const [{ message }] = await warned
  expect(message).toContain('sdk.start()')
})

test.each([{ OTEL_SDK_DISABLED: 'true' }, { OTEL_METRICS_EXPORTER: 'none' }])(
  'no word of that where the environment wants no metrics: %j',
  async (environment) => {
    vi.resetModules()
    const { recordMetrics: recordAnew } = await import('../src/index.ts')
    const emitted = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    onTestFinished(() => void vi.restoreAllMocks())
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value)
    onTestFinished(() => void vi.unstubAllEnvs())

    recordAnew(metrics.getMeter('search'))()

    expect(emitted).not.toHaveBeenCalled()
  },
)
