import {
  defineEvent,
  operation,
  skewMeasured,
  breakerMoved,
  queueJudged,
  floorJudged,
  loopLagged,
} from '@timebudget/core'
import { expect, test, vi } from 'vitest'
import { openTab } from './support/browser.ts'
import { pause } from './support/server.ts'
import { startService } from './support/service.ts'

vi.setConfig({ testTimeout: 90_000 })

test('draft', async (context) => {
  const { page, complaints, picture } = await openTab(context, { colorScheme: 'light' })
  const service = await startService()
  await page.goto(service.inspector)
  for (let i = 0; i < 14; i++) {
    service.visit('/work?token=secret')
    service.visit('/limited', { method: 'POST' })
    if (i % 3 === 0) service.visit('/slow')
    if (i % 4 === 0) service.visit('/fail')
    await pause(20)
  }
  const leave = service.visit('/hang')
  await pause(500)
  leave()
  service.visit('/hang')
  await pause(900)
  await picture('a-list')
  await page.locator('tr.request', { hasText: '/work' }).first().click()
  await pause(300)
  await page.locator('.waterfall tbody tr').nth(3).hover()
  await pause(200)
  await picture('a-detail')
  await page.locator('tr.request', { hasText: '/limited' }).first().click()
  await pause(300)
  await picture('a-limited')
  await page.setViewportSize({ width: 390, height: 844 })
  await pause(200)
  await picture('a-phone-detail')
  await page.getByRole('button', { name: 'Close' }).click()
  await pause(200)
  await picture('a-phone-list')
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.emulateMedia({ colorScheme: 'dark' })
  skewMeasured.publish(() => ({ peer: '10.0.0.7', skew: 34.2, worthWarning: true }))
  skewMeasured.publish(() => ({ peer: '10.0.0.8', skew: -1.4, worthWarning: false }))
  breakerMoved.publish(() => ({ breaker: 'vectors', from: 'closed', to: 'open' }))
  queueJudged.publish(() => ({
    queue: 'gpu',
    deadline: undefined,
    decision: 'admitted',
    waited: 12,
    predicted: 14,
    waiting: 3,
    running: 4,
  }))
  floorJudged.publish(() => ({
    operation: 'generate',
    remaining: 300,
    floor: 412,
    chance: 0.12,
    decision: 'explored',
  }))
  loopLagged.publish(() => ({ lag: 44 }))
  const call = (outcome: string, firstToken: number | undefined) =>
    defineEvent<object>('timebudget:llm.call.finished').publish(() => ({
      provider: 'openai',
      model: 'gpt-5-mini',
      outcome,
      usage: { inputTokens: 900, outputTokens: 210 },
      timings: { firstToken, total: 2000 },
      sdkRetry: false,
    }))
  for (let i = 0; i < 40; i++) call('ok', 300 + i * 5)
  call('first_token_timeout', undefined)
  call('stream_stalled', 300)
  for (let i = 0; i < 40; i++)
    defineEvent<object>('timebudget:llm.answered').publish(() => ({
      outcome: 'ok',
      answer: { complete: true, degraded: i % 10 === 0 },
      cost: { amount: 0.0021, currency: 'USD', estimated: i === 3 },
    }))
  await picture('a-dark-list')
  for (const name of ['Operations', 'Models', 'Service']) {
    await page.getByRole('tab', { name }).click()
    await pause(500)
    await picture(`a-dark-${name}`)
  }
  expect(complaints).toEqual([])
  void operation
})
