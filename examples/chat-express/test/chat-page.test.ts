import { describe, expect, test, vi } from 'vitest'
import { errorAnswer, neverAnswers, steadyTokens } from '@timebudget/llm/testing'
import { chatSite } from './chat-site.ts'
import { picture } from './looks.ts'
import { answerText, says } from './scripts.ts'

// a browser takes its time to start where others work too
vi.setConfig({ testTimeout: 90_000 })

describe('an answer', () => {
  test('is thought of, streams, and is there: each state says so', async (context) => {
    const { steps = [] } = says(answerText)
    const site = await chatSite(context, {
      script: { steps: [{ reasoning: 'Rayleigh, surely.' }, { wait: '4s' }, ...steps] },
    })
    await picture(site.page, 'idle')
    await site.ask()
    await site.reaches('thinking')
    await site.page.getByText('Thinking', { exact: true }).first().waitFor()
    await picture(site.page, 'thinking')
    await site.reaches('streaming')
    const done = await site.reaches('done')
    expect(await site.answer.innerText()).toBe(answerText)
    expect(await done.innerText()).toMatch(/gpt-5 · \d\.\d s/)
    expect(await site.page.getByRole('status').innerText()).toBe('The answer is complete.')
    await picture(site.page, 'done')
    expect(site.posts()).toBe(1)
  })

  test('shows how much of its time is left, while it is made', async (context) => {
    const site = await chatSite(context, { script: says(answerText, 60) })
    const bar = site.page.getByRole('progressbar')
    expect(await bar.count()).toBe(0)
    await site.ask()
    await site.reaches('streaming')
    const before = Number(await bar.getAttribute('aria-valuenow'))
    expect(before).toBeGreaterThan(10)
    expect(await bar.getAttribute('aria-valuetext')).toMatch(/^\d+ s left$/)
    await site.page.getByText(`${before - 2} s left`).waitFor()
    await picture(site.page, 'streaming')
    await site.reaches('done')
    expect(await bar.count()).toBe(0)
  })

  test('of another model than the first wears a badge', async (context) => {
    const site = await chatSite(context, {
      script: ({ body }) => (body['model'] === 'gpt-5' ? errorAnswer(503) : says(answerText)),
    })
    await site.ask()
    await site.reaches('done')
    expect(await site.page.getByText('Backup answer').isVisible()).toBe(true)
    expect(await site.answer.innerText()).toBe(answerText)
    await picture(site.page, 'degraded')
    expect(site.posts()).toBe(1)
  })

  test('that looks like markup is text, as is its question', async (context) => {
    const hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script> &amp; **all**'
    const site = await chatSite(context, { script: says(hostile) })
    await site.ask(hostile)
    await site.reaches('done')
    expect(await site.answer.innerText()).toBe(hostile)
    expect(await site.page.getByRole('heading', { level: 2 }).innerText()).toBe(hostile)
    expect(await site.page.locator('img').count()).toBe(0)
    expect(await site.page.title()).toBe('Chat')
  })
})

describe('a user', () => {
  test('stops the model with a click, and keeps the text', async (context) => {
    const site = await chatSite(context, { script: steadyTokens(100_000, 30) })
    await site.ask()
    const request = await site.provider.nextRequest()
    await request.sent(20)
    await site.page.getByText('word word').waitFor()
    // the browser's clock is this machine's; the driver's own time for a click does not count
    await site.page.evaluate("addEventListener('click', () => (globalThis.clickedAt = Date.now()), true)")
    await site.page.getByRole('button', { name: 'Stop' }).click()
    const { byClient, at } = await request.closed
    const took = performance.timeOrigin + at - (await site.page.evaluate<number>('clickedAt'))
    expect(byClient).toBe(true)
    expect(took).toBeLessThan(1_000)
    console.log(`stopped upstream ${Math.round(took)} ms after the click`)
    const turn = await site.reaches('stopped')
    expect(await turn.innerText()).toContain('Stopped.')
    expect(await turn.innerText()).toContain('Incomplete')
    expect(await site.answer.innerText()).toMatch(/^word( word)+$/)
    await picture(site.page, 'stopped')
    expect(site.provider.requests).toHaveLength(1)
    expect(site.posts()).toBe(1)
  })

  test('stops the model with Escape while it thinks', async (context) => {
    const site = await chatSite(context, { script: neverAnswers() })
    await site.ask()
    const request = await site.provider.nextRequest()
    await site.page.keyboard.press('Escape')
    expect(await request.closed).toMatchObject({ byClient: true })
    await site.reaches('stopped')
    expect(await site.page.getByRole('button', { name: 'Keep it' }).count()).toBe(0)
    expect(site.posts()).toBe(1)
  })

  test('stops the model by closing the tab', async (context) => {
    const site = await chatSite(context, { script: steadyTokens(100_000, 30) })
    await site.ask()
    const request = await site.provider.nextRequest()
    await request.sent(20)
    const begun = performance.now()
    await site.page.close({ runBeforeUnload: true })
    expect(await request.closed).toMatchObject({ byClient: true })
    // no connection was lost: nothing waits for this page to come back
    expect(performance.now() - begun).toBeLessThan(3_000)
    console.log(`stopped upstream ${Math.round(performance.now() - begun)} ms after the tab was closed`)
  })

  test('stops the model by going elsewhere', async (context) => {
    const site = await chatSite(context, { script: steadyTokens(100_000, 30) })
    await site.ask()
    const request = await site.provider.nextRequest()
    await request.sent(20)
    const begun = performance.now()
    await site.page.goto('about:blank')
    expect(await request.closed).toMatchObject({ byClient: true })
    expect(performance.now() - begun).toBeLessThan(3_000)
  })

  test('asks one question at a time, and the next when the first is answered', async (context) => {
    const site = await chatSite(context, { script: says(answerText, 30) })
    await site.ask('One?')
    await site.reaches('streaming')
    await site.ask('Two?')
    await site.reaches('done')
    expect(site.posts()).toBe(1)
    expect(await site.page.getByRole('textbox').inputValue()).toBe('Two?')
    await site.page.getByRole('button', { name: 'Send' }).click()
    await site.page.locator('article').nth(1).waitFor()
    await site.reaches('done')
    expect(await site.answer.innerText()).toBe(answerText)
    expect(await site.page.getByRole('heading', { level: 2 }).allInnerTexts()).toEqual(['One?', 'Two?'])
    expect(site.posts()).toBe(2)
    await picture(site.page, 'two-answers')
  })
})
