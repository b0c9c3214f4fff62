import { once } from 'node:events'
import { request as ask } from 'node:http'
import {
  breakerMoved,
  defineEvent,
  floorJudged,
  loopLagged,
  operation,
  queueJudged,
  skewMeasured,
} from '@timebudget/core'
import type { Page } from 'playwright-core'
import { expect, test, vi } from 'vitest'
import { openTab } from './support/browser.ts'
import { listen, pause, until } from './support/server.ts'
import { type Service, startService } from './support/service.ts'

// a browser takes its time to start where others work too
vi.setConfig({ testTimeout: 90_000 })

const long = { headers: { 'x-request-timeout-ms': '60000' } }

/** What the page says of how many it lists. */
async function lists(page: Page, pattern: RegExp): Promise<void> {
  await page.locator('#listed').filter({ hasText: pattern }).waitFor()
}

const rows = (page: Page, name: string | RegExp) => page.locator('tr.request').filter({ hasText: name })

/** Requests that are sent at once arrive in any order; the list is in that of their arrival. */
async function arrival({ server }: Service, path: string, send: () => void): Promise<void> {
  await new Promise<void>((resolve) => {
    server.on('request', function arrived({ url }) {
      if (url !== path) return
      server.off('request', arrived)
      resolve()
    })
    send()
  })
}

/** One of each kind, all over but one. What has to end well has the time for it on a busy machine, if it is not for a picture. */
async function visitEach(
  service: Service,
  page: Page,
  { headers }: { headers: Record<string, string> } = long,
): Promise<void> {
  const { visit } = service
  for (const path of ['/quote', '/quote', '/limited', '/fail', '/nowhere']) {
    await arrival(service, path, () => visit(path, { headers }))
  }
  await arrival(service, '/slow', () => visit('/slow'))
  const secret = '/quote?token=secret'
  await arrival(service, secret, () => visit(secret, { method: 'POST', headers }))
  const leave = visit('/hang', long)
  await lists(page, /of 8 · 1 in flight/)
  leave()
  await lists(page, /of 8 · 0 in flight/)
  visit('/hang', long)
  await lists(page, /9 of 9 · 1 in flight/)
}

test('five hundred requests at once are drawn smoothly, in no more rows than can be seen', async (context) => {
  const { page, complaints, picture } = await openTab(context)
  let isOver = false
  const service = await startService({
    async '/steps'() {
      for (let step = 1; !isOver; step += 1)
        await operation(`step ${step}`, { timeout: '2s' }, () => pause(200))
      return 'done'
    },
  })
  await page.goto(service.inspector)
  for (let index = 0; index < 500; index += 1) service.visit(`/steps?${index}`, long)
  await lists(page, /500 of 500 · 500 in flight/)
  const { frames, most, cpu } = await watchFrames(page)
  // a twentieth of it where nobody else works; drawing 500 rows anew ten times a second would take all of it
  expect(frames).toBeGreaterThan(2)
  expect(cpu).toBeLessThan(1_500)
  expect(most).toBeGreaterThan(20)
  expect(most).toBeLessThan(60)
  await picture('live-500')
  await page
    .locator('#list-scroller')
    .evaluate((scroller: { scrollTop: number }) => (scroller.scrollTop = 1e6))
  await page.locator('tr.request[aria-rowindex="501"]').click()
  await page.getByRole('rowheader', { name: 'step 2', exact: true }).waitFor()
  isOver = true
  await lists(page, /500 of 500 · 0 in flight/)
  expect(complaints).toEqual([])
})

/** For three seconds: how many frames there were, how many rows at most, and the page's own CPU time in milliseconds. */
async function watchFrames(page: Page): Promise<{ frames: number; most: number; cpu: number }> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' })
  const busy = async (): Promise<number> => {
    const { metrics } = await devtools.send('Performance.getMetrics')
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1_000
  }
  const before = await busy()
  const seen = await page.evaluate(
    () =>
      new Promise<{ frames: number; most: number }>((resolve) => {
        const { requestAnimationFrame, document } = globalThis as unknown as {
          requestAnimationFrame(callback: (now: number) => void): void
          document: { querySelectorAll(selector: string): { length: number } }
        }
        let frames = 0
        let most = 0
        const begun = performance.now()
        requestAnimationFrame(function count(now) {
          frames += 1
          most = Math.max(most, document.querySelectorAll('tr.request').length)
          if (now - begun < 3_000) requestAnimationFrame(count)
          else resolve({ frames, most })
        })
      }),
  )
  return { ...seen, cpu: (await busy()) - before }
}

test('filters: by method and path, outcome, time, and what is in flight', async (context) => {
  const { page, complaints } = await openTab(context)
  const service = await startService()
  await page.goto(service.inspector)
  await visitEach(service, page)

  await page.getByLabel('Method or path').fill('post quote')
  await lists(page, /^1 of 9/)
  await page.getByLabel('Method or path').fill('/QUOTE')
  await lists(page, /^3 of 9/)
  await page.getByLabel('Method or path').fill('token=')
  await lists(page, /^0 of 9/)
  await page.getByText('No request passes the filter.').waitFor()
  await page.getByLabel('Method or path').fill('')

  await page.getByRole('combobox', { name: 'Outcome' }).selectOption('client closed')
  await lists(page, /^1 of 9/)
  expect(await rows(page, '/hang').innerText()).toContain('client closed')
  await page.getByRole('combobox', { name: 'Outcome' }).selectOption('Anything but ok')
  await lists(page, /^3 of 9/)
  await page.getByRole('combobox', { name: 'Outcome' }).selectOption('Any outcome')

  await page.getByLabel('slower than').fill('100000')
  await lists(page, /^0 of 9/)
  await page.getByLabel('slower than').fill('')
  await page.getByLabel('in flight').check()
  await lists(page, /^1 of 9/)
  expect(await rows(page, '/hang').innerText()).toContain('running')
  expect(complaints).toEqual([])
})

test('the keyboard alone leads to a request and to the figures of an operation', async (context) => {
  const { page, complaints } = await openTab(context)
  const service = await startService()
  await page.goto(service.inspector)
  await visitEach(service, page)
  const list = page.getByRole('grid', { name: /^Requests/ })
  await list.focus()
  await page.keyboard.press('End')
  const last = page.locator('tr.request[aria-selected="true"]')
  await last.filter({ hasText: '/quote' }).waitFor()
  expect(await list.getAttribute('aria-activedescendant')).toBe(await last.getAttribute('id'))
  // a held key repeats faster than the page is drawn
  await list.evaluate((table: { dispatchEvent(event: unknown): void }) => {
    const { KeyboardEvent } = globalThis as unknown as { KeyboardEvent: new (...of: unknown[]) => unknown }
    for (let times = 0; times < 2; times += 1)
      table.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', bubbles: true }))
  })
  await page.getByRole('heading', { name: 'GET /limited' }).waitFor()
  await page.getByRole('button', { name: 'rerank' }).focus()
  await page.getByRole('heading', { name: 'rerank' }).waitFor()
  expect(await page.locator('.pointed-at').innerText()).toMatch(/granted\s+120 ms/)
  expect(await page.locator('.pointed-at').innerText()).toMatch(/failed with\s+OPERATION_TIMEOUT/)
  await page.keyboard.press('Escape')
  await page.locator('#detail').waitFor({ state: 'hidden' })
  await page.getByRole('tab', { name: 'Requests' }).focus()
  await page.keyboard.press('ArrowRight')
  await page.getByRole('tabpanel', { name: 'Operations' }).waitFor()
  expect(complaints).toEqual([])
})

test('hostile names are text, wherever they are shown', async (context) => {
  const { page, complaints } = await openTab(context)
  const names = [
    '<img src=x onerror="hacked=1">',
    '"><script>hacked=1</script>',
    'javascript:hacked=1',
    '__proto__',
    'a\u0000b\u202ec',
    'n'.repeat(5_000),
  ]
  const service = await startService({
    async '/%3Cimg%20src=x%20onerror=hacked=1%3E'() {
      for (const name of names) await operation(name, { floor: 1 }, () => {})
      return 'done'
    },
  })
  breakerMoved.publish(() => ({ breaker: '<b id="bold">', from: 'closed', to: 'open' }))
  await page.goto(service.inspector)
  service.visit('/%3Cimg%20src=x%20onerror=hacked=1%3E')
  await rows(page, 'onerror').click()
  const shown = await page.locator('.waterfall tbody .name').allTextContents()
  expect(shown).toEqual([...names.slice(0, 4), 'a\ufffdb\ufffdc', `${'n'.repeat(95)}…`])
  await page.getByRole('tab', { name: 'Operations' }).click()
  await page.getByRole('rowheader', { name: '<img' }).waitFor()
  await page.getByRole('tab', { name: 'Service' }).click()
  await page.getByRole('rowheader', { name: '<b id' }).waitFor()
  expect(await page.locator('main img, main script, #bold').count()).toBe(0)
  expect(await page.evaluate('typeof hacked')).toBe('undefined')
  expect(complaints).toEqual([])
})

test('models, totals, clocks, breakers and queues have views of their own', async (context) => {
  const { page, complaints } = await openTab(context)
  const service = await startService()
  await page.goto(service.inspector)
  await page.getByRole('tab', { name: 'Models' }).click()
  await page.getByText('No model has been called').waitFor()
  tellOfModels()
  await page.getByText('USD 0.00210').waitFor()
  const models = await page.getByRole('tabpanel', { name: 'Models' }).innerText()
  expect(models).toMatch(/First-token timeouts\s+2\.4 %/)
  expect(models).toMatch(/Stalls\s+2\.4 %/)
  expect(models).toMatch(/Degraded\s+10 %/)
  expect(models).toContain('gpt-5-mini (openai)')

  tellOfTheService()
  await page.getByRole('tab', { name: 'Service' }).click()
  await page.getByRole('row', { name: /10\.0\.0\.7.*\+34 ms !/ }).waitFor()
  await page.getByRole('row', { name: /vectors.*open/ }).waitFor()
  await page.getByRole('row', { name: /gpu 4 3 1 0 0/ }).waitFor()
  await page.getByRole('tab', { name: 'Operations' }).click()
  await page.getByRole('row', { name: /generate.*412 ms learned/ }).waitFor()
  expect(complaints).toEqual([])
})

test.for([
  { name: 'light', colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  { name: 'phone-light', colorScheme: 'light', viewport: { width: 390, height: 844 } },
  { name: 'phone-dark', colorScheme: 'dark', viewport: { width: 390, height: 844 } },
] as const)('it fits and keeps its contrast: $name', async ({ name, ...options }, context) => {
  const { page, complaints, picture } = await openTab(context, options)
  const service = await startService()
  await page.goto(service.inspector)
  await visitEach(service, page, { headers: { 'x-request-timeout-ms': '1000' } })
  tellOfModels()
  tellOfTheService()
  await picture(`${name}-list`)
  expect(await page.evaluate<boolean>(isWholeSelect)).toBe(true)
  await rows(page, /GET\s*\/limited/).click()
  await page.getByRole('button', { name: 'rerank' }).click()
  await picture(`${name}-limited`)
  expect(await page.evaluate<string[]>(overlappingMarks)).toEqual([])
  await page.keyboard.press('Escape')
  await rows(page, /GET\s*\/quote/)
    .first()
    .click()
  await page.getByRole('button', { name: /whole budget|time used/ }).click()
  // on a busy machine its budget may have ended before it came to its last operation
  await page.locator('.waterfall tbody .name').last().click()
  await picture(`${name}-request`)
  await page.getByRole('button', { name: 'Close' }).click()
  for (const view of ['Operations', 'Models', 'Service']) {
    await page.getByRole('tab', { name: view }).click()
    await page.getByRole('tabpanel', { name: view }).locator('.card').first().waitFor()
    await picture(`${name}-${view.toLowerCase()}`)
    const { content, width } = await page.evaluate<{ content: number; width: number }>(
      '({ content: document.documentElement.scrollWidth, width: innerWidth })',
    )
    expect(content).toBeLessThanOrEqual(width)
  }
  const [text, ground] = await page.evaluate<[string, string]>(
    '[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]',
  )
  const isDark = options.colorScheme === 'dark'
  expect(brightness(text) - brightness(ground) > 0).toBe(isDark)
  expect(Math.abs(brightness(text) - brightness(ground))).toBeGreaterThan(150)
  expect(complaints).toEqual([])
})

test('behind a proxy that puts a path before it the page works, and its policy blocks nothing', async (context) => {
  const { page, complaints } = await openTab(context)
  const service = await startService()
  const proxy = await listen((request, response) => {
    const path = request.url?.replace('/search', '')
    const onward = { path, method: request.method, headers: request.headers, agent: false }
    request.pipe(
      ask(service.url, onward, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(response)
        // the service goes before the page has stopped asking
      }).on('error', () => response.destroy()),
    )
  })
  await page.goto(`${proxy}/search/__budget`)
  expect(page.url()).toBe(`${proxy}/search/__budget/`)
  service.visit('/fail')
  await rows(page, '/fail').click()
  await page.getByRole('heading', { name: 'GET /fail' }).waitFor()
  expect(complaints).toEqual([])
})

test('a page whose server goes says so, and goes on with the next one from the beginning', async (context) => {
  const { page } = await openTab(context)
  const first = await startService()
  await page.goto(first.inspector)
  first.visit('/fail')
  await lists(page, /1 of 1/)
  const closed = once(first.server, 'close')
  first.server.close()
  // although the page asks again and again
  await closed
  await page.getByText('server away').waitFor()
  const second = await startService()
  const { port } = new URL(first.url)
  second.server.close()
  second.server.listen(Number(port), '127.0.0.1')
  await page.getByText('live', { exact: true }).waitFor()
  await lists(page, /0 of 0/)
  await page.getByText('Waiting for requests. Those that this process handles under deadline()').waitFor()
})

test('a page that is paused or that nobody looks at asks for nothing', async (context) => {
  const { page } = await openTab(context)
  const service = await startService()
  let asked = 0
  service.server.on('request', () => {
    asked += 1
  })
  await page.goto(service.inspector)
  await page.getByText('live', { exact: true }).waitFor()
  const isQuiet = async (): Promise<boolean> => {
    const before = asked
    await pause(1_500)
    return asked === before
  }
  await page.getByRole('button', { name: 'Pause' }).click()
  await until(isQuiet)
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByText('live', { exact: true }).waitFor()
  const look = (hidden: boolean): Promise<void> =>
    page.evaluate((isHidden) => {
      const { document, Event } = globalThis as unknown as {
        document: EventTarget
        Event: typeof globalThis.Event
      }
      Object.defineProperty(document, 'hidden', { value: isHidden, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }, hidden)
  await look(true)
  await until(isQuiet)
  const before = asked
  await look(false)
  await until(() => asked > before)
})

const isWholeSelect = `(() => {
  const select = document.querySelector('#fit')
  const shown = select.offsetWidth
  select.style.flex = 'none'
  const needed = select.offsetWidth
  select.style.flex = ''
  return shown >= needed
})()`

const overlappingMarks = `(() => {
  const marks = [...document.querySelectorAll('.axis .mark')]
    .map((mark) => ({ text: mark.textContent, ...mark.getBoundingClientRect().toJSON() }))
    .filter(({ width }) => width > 0)
    .sort((one, other) => one.left - other.left)
  return marks.filter(({ left }, index) => index > 0 && left < marks[index - 1].right).map(({ text }) => text)
})()`

function brightness(colour: string): number {
  const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map(Number)
  return (red * 299 + green * 587 + blue * 114) / 1_000
}

function tellOfModels(): void {
  const call = (outcome: string, firstToken?: number): void =>
    defineEvent<object>('timebudget:llm.call.finished').publish(() => ({
      provider: 'openai',
      model: 'gpt-5-mini',
      outcome,
      usage: { inputTokens: 900, outputTokens: 210 },
      timings: { firstToken, total: 4_000 },
      sdkRetry: false,
    }))
  for (let index = 0; index < 40; index += 1) {
    call('ok', 300 + index * 5)
    defineEvent<object>('timebudget:llm.answered').publish(() => ({
      outcome: 'ok',
      answer: { complete: true, degraded: index % 10 === 0 },
      cost: { amount: 0.0021, currency: 'USD', estimated: index === 3 },
    }))
  }
  call('first_token_timeout')
  call('stream_stalled', 300)
}

function tellOfTheService(): void {
  skewMeasured.publish(() => ({ peer: '10.0.0.7', skew: 34.2, worthWarning: true }))
  skewMeasured.publish(() => ({ peer: '10.0.0.8', skew: -1.4, worthWarning: false }))
  breakerMoved.publish(() => ({ breaker: 'vectors', from: 'closed', to: 'open' }))
  const judged = { deadline: undefined, waited: 12, predicted: 14, waiting: 3, running: 4 }
  queueJudged.publish(() => ({ queue: 'gpu', decision: 'admitted', ...judged }))
  const learned = { remaining: 300, floor: 412, chance: 0.12 }
  floorJudged.publish(() => ({ operation: 'generate', decision: 'explored', ...learned }))
  loopLagged.publish(() => ({ lag: 44 }))
}
