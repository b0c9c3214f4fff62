import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { neverAnswers, steadyTokens } from '@timebudget/llm/testing'
import { chatSite } from './chat-site.ts'
import { picture } from './looks.ts'
import { answerText, breaksOff, numbered, numbers, says } from './scripts.ts'

// a browser takes its time to start where others work too
vi.setConfig({ testTimeout: 90_000 })

const tries = 'The answer is taking too long to start. Please try again.'
const stalled = 'The answer has stalled. What has arrived is kept.'
const late = 'Time is up. What has arrived is kept.'

describe('an answer that stands still', () => {
  test('is interrupted after its limit, with its text kept and its model stopped', async (context) => {
    const site = await chatSite(context, { script: breaksOff(30), limits: { content: 1_000 } })
    await site.ask()
    const request = await site.provider.nextRequest()
    const turn = await site.reaches('interrupted')
    expect(await turn.getByText(stalled).isVisible()).toBe(true)
    expect(answerText.startsWith(await site.answer.innerText())).toBe(true)
    expect((await site.answer.innerText()).split(' ')).toHaveLength(30)
    expect(await site.page.getByRole('status').innerText()).toBe(stalled)
    expect(await request.closed).toMatchObject({ byClient: true })
    await picture(site.page, 'interrupted')
    expect(site.posts()).toBe(1)
  })

  test('can be kept: then it is the answer, marked as incomplete', async (context) => {
    const site = await chatSite(context, { script: breaksOff(30), limits: { content: 500 } })
    await site.ask()
    const turn = await site.reaches('interrupted')
    const text = await site.answer.innerText()
    await turn.getByRole('button', { name: 'Keep it' }).click()
    await site.reaches('kept')
    expect(await site.page.locator('.notice').isVisible()).toBe(false)
    expect(await site.answer.innerText()).toBe(text)
    expect(await site.page.getByText('Incomplete').isVisible()).toBe(true)
    expect(await site.page.evaluate('document.activeElement.id')).toBe('question')
    await picture(site.page, 'kept')
    expect(site.posts()).toBe(1)
  })

  test('can be asked for again: a new question, and the whole of its answer', async (context) => {
    const site = await chatSite(context, {
      script: (_request, nth) => (nth === 0 ? breaksOff(30) : says(answerText)),
      limits: { content: 1_000 },
    })
    await site.ask()
    const turn = await site.reaches('interrupted')
    expect(site.posts()).toBe(1)
    await turn.getByRole('button', { name: 'Ask again' }).click()
    await site.reaches('done')
    expect(await site.answer.innerText()).toBe(answerText)
    expect(await site.page.getByText('Incomplete').count()).toBe(0)
    expect(site.posts()).toBe(2)
  })

  test('is noticed by the server too, which keeps what there is and says who broke off', async (context) => {
    const site = await chatSite(context, { script: breaksOff(30) })
    await site.ask()
    const turn = await site.reaches('interrupted')
    expect(await turn.innerText()).toContain('The model broke off. What has arrived is kept.')
    expect((await site.answer.innerText()).split(' ')).toHaveLength(30)
    expect(site.posts()).toBe(1)
  })
})

describe('time that is up', () => {
  test('before the first token is said kindly, and another try works', async (context) => {
    const site = await chatSite(context, {
      script: (_request, nth) => (nth === 0 ? neverAnswers() : says(answerText)),
      limits: { 'first-token': 3_000 },
    })
    await site.ask()
    const request = await site.provider.nextRequest()
    const turn = await site.reaches('failed')
    expect(await turn.getByText(tries).isVisible()).toBe(true)
    expect(await turn.getByRole('button', { name: 'Keep it' }).count()).toBe(0)
    expect(await request.closed).toMatchObject({ byClient: true })
    await picture(site.page, 'failed')
    expect(site.posts()).toBe(1)
    await turn.getByRole('button', { name: 'Ask again' }).focus()
    await site.page.keyboard.press('Enter')
    await site.reaches('done')
    expect(await site.answer.innerText()).toBe(answerText)
    expect(site.posts()).toBe(2)
  })

  test('at the server shows as such, with what had arrived', async (context) => {
    const site = await chatSite(context, { script: steadyTokens(100_000, 40), limits: { budget: 3_000 } })
    await site.ask()
    const turn = await site.reaches('interrupted')
    expect(await turn.getByText(late).isVisible()).toBe(true)
    expect(await site.answer.innerText()).toMatch(/^word( word)+$/)
    await picture(site.page, 'deadline')
    expect(site.posts()).toBe(1)
  })

  test('before anything could be said shows as such too', async (context) => {
    const site = await chatSite(context, { script: neverAnswers(), limits: { budget: 1 } })
    await site.ask()
    const turn = await site.reaches('failed')
    expect(await turn.innerText()).toContain('Time is up.')
    expect(site.posts()).toBe(1)
  })
})

describe('a network', () => {
  test('that is cut and comes back loses and doubles no token, and asks nothing a second time', async (context) => {
    const site = await chatSite(context, { script: numbered(300, 25) })
    await site.ask()
    for (const seen of ['n5 ', 'n40 ']) {
      await site.page.getByText(seen).waitFor()
      site.network.cut()
      await site.reaches('reconnecting')
      expect(await site.page.getByText('Connection lost. Reconnecting').isVisible()).toBe(true)
      site.network.restore()
    }
    await site.reaches('done')
    expect(await site.answer.textContent()).toBe(numbers(300).join(''))
    expect(site.posts()).toBe(1)
    expect(site.provider.requests).toHaveLength(1)
  })

  test('that is back while the model still thinks shows it thinking', async (context) => {
    const { steps = [] } = says(answerText)
    const site = await chatSite(context, { script: { steps: [{ wait: '7s' }, ...steps] } })
    const answered = site.page.waitForResponse((response) => response.url().endsWith('/chat'))
    await site.ask()
    await answered
    // the first event, by which the page comes back, follows at once
    await pause(1_000)
    site.network.cut()
    await site.reaches('reconnecting')
    site.network.restore()
    // heartbeats say so, one each 3 s
    await site.reaches('thinking')
    await site.reaches('done')
    expect(await site.answer.innerText()).toBe(answerText)
    expect(site.posts()).toBe(1)
  })

  test('that is back at a server which knows nothing of the answer interrupts it, with its text kept', async (context) => {
    const site = await chatSite(context, { script: numbered(1_000, 25) })
    await site.ask()
    await site.page.getByText('n20 ').waitFor()
    site.network.cut()
    await site.reaches('reconnecting')
    await picture(site.page, 'reconnecting')
    await site.restart()
    site.network.restore()
    const turn = await site.reaches('interrupted')
    expect(await turn.innerText()).toContain('The connection was lost. What has arrived is kept.')
    const text = (await site.answer.textContent()) ?? ''
    expect(text).toBe(numbers(text.trim().split(' ').length).join(''))
    await pause(500)
    expect(site.posts()).toBe(1)
  })

  test('without a server says so, and asks again only when told to', async (context) => {
    const site = await chatSite(context, { script: says(answerText) })
    site.network.cut()
    await site.ask()
    const turn = await site.reaches('failed')
    site.network.restore()
    await pause(1_000)
    expect(site.posts()).toBe(0)
    await turn.getByRole('button', { name: 'Ask again' }).click()
    await site.reaches('done')
    expect(site.posts()).toBe(1)
  })
})
