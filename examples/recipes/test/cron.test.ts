import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { fetch } from '@timebudget/clients/fetch'
import { currentDeadline, operationFinished } from '@timebudget/core'
import { slowUpstream } from '@timebudget/core/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { dyingWithUs } from '../../../test/support/dying-with-us.ts'

process.env['REFRESH_AT'] = '0 0 1 1 *'
const { schedule } = await import('../src/cron.ts')
const everySecond = '* * * * * *'

test('a run ends before the next one begins, and what it calls is told how long it has', async () => {
  await using index = await slowUpstream()
  vi.spyOn(console, 'error').mockImplementation(() => undefined)
  const ends: string[] = []
  const stop = operationFinished.subscribe(({ entry }) => {
    if (entry.name === 'work') ends.push(String(entry.outcome))
  })
  const job = schedule(everySecond, { name: 'work', work: () => fetch(index.url) })
  onTestFinished(() => {
    job.stop()
    stop()
  })
  const first = await index.nextRequest()
  expect(Number(first.headers['x-request-timeout-ms'])).toBeLessThanOrEqual(800)
  expect(await first.abandoned).toBe(true)
  const second = await index.nextRequest()
  expect(Number(second.headers['x-request-timeout-ms'])).toBeLessThanOrEqual(800)
  expect(Number(second.headers['x-request-timeout-ms'])).toBeGreaterThan(0)
  expect(ends[0]).toBe('operation_timeout')
})

test('work that ignores its signal keeps the next run away, so that no two run at once', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined)
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  let runs = 0
  let letGo = (): void => {}
  const left: (number | undefined)[] = []
  const job = schedule(everySecond, {
    name: 'deaf',
    async work() {
      runs += 1
      left.push(currentDeadline()?.remaining())
      await new Promise<void>((resolve) => (letGo = resolve))
    },
  })
  onTestFinished(() => job.stop())
  await expect.poll(() => warned.mock.calls.length, { timeout: 5_000 }).toBeGreaterThan(0)
  expect(runs).toBe(1)
  letGo()
  await expect.poll(() => runs, { timeout: 5_000 }).toBe(2)
  expect(left[1]).toBeLessThanOrEqual(800)
  letGo()
})

test('a process that goes down ends the run, and waits for nothing', async () => {
  await using index = await slowUpstream()
  const [command, ...rest] = [
    ...dyingWithUs(),
    process.execPath,
    fileURLToPath(new URL('../dist/cron.js', import.meta.url)),
  ]
  const env = { ...process.env, INDEX_URL: index.url.slice(0, -1), REFRESH_AT: everySecond }
  const child = spawn(command, rest, { env, stdio: 'ignore' })
  const exited = once(child, 'exit')
  const { url, abandoned } = await index.nextRequest()
  child.kill('SIGTERM')
  expect(url).toBe('/refresh')
  expect(await abandoned).toBe(true)
  expect(await exited).toEqual([0, null])
})
