import type { Page } from 'playwright-core'
import { describe, expect, test, vi } from 'vitest'
import { steadyTokens } from '@timebudget/llm/testing'
import { chatSite, hosts } from './chat-site.ts'
import { picture } from './looks.ts'
import { answerText, breaksOff, says } from './scripts.ts'

// a browser takes its time to start where others work too
vi.setConfig({ testTimeout: 90_000 })

describe('the page', () => {
  test('can be used by keyboard alone: Enter sends, Shift + Enter does not, Tab comes to what is there', async (context) => {
    const { page, ask, reaches, posts } = await chatSite(context, {
      script: breaksOff(30),
      limits: { content: 1_000 },
    })
    const focused = (): Promise<string> =>
      page.evaluate('document.activeElement.ariaLabel || document.activeElement.textContent.trim()')
    expect(await page.getByRole('textbox', { name: 'Your question' }).evaluate(isFocused)).toBe(true)
    await page.keyboard.type('One')
    await page.keyboard.press('Shift+Enter')
    await page.keyboard.type('two')
    expect(await page.getByRole('textbox').inputValue()).toBe('One\ntwo')
    await page.keyboard.press('Tab')
    expect(await focused()).toBe('Send')
    await page.keyboard.press('Enter')
    expect(await focused()).toBe('Stop')
    await reaches('interrupted')
    expect(await page.getByRole('textbox').evaluate(isFocused)).toBe(true)
    expect(await page.getByRole('heading', { level: 2 }).innerText()).toBe('One\ntwo')
    await page.keyboard.press('Shift+Tab')
    expect(await focused()).toBe('Ask again')
    await page.keyboard.press('Shift+Tab')
    expect(await focused()).toBe('Keep it')
    await page.keyboard.press('Enter')
    await reaches('kept')
    expect(await page.getByRole('textbox').evaluate(isFocused)).toBe(true)
    await ask('   ')
    expect(posts()).toBe(1)
  })

  test('sends nothing when Enter ends the choice of a character', async (context) => {
    const { page, posts } = await chatSite(context, { script: says(answerText) })
    await page.getByRole('textbox').fill('天')
    await page.getByRole('textbox').dispatchEvent('keydown', { key: 'Enter', isComposing: true })
    expect(await page.locator('article').count()).toBe(0)
    expect(posts()).toBe(0)
  })

  test('speaks Chinese to a browser that does', async (context) => {
    const { page, ask, reaches } = await chatSite(context, {
      script: breaksOff(30),
      limits: { content: 1_000 },
      browser: { locale: 'zh-CN' },
    })
    expect(await page.evaluate('document.documentElement.lang')).toBe('zh-Hans')
    await page.getByRole('heading', { name: '想了解什么' }).waitFor()
    await picture(page, 'chinese-idle')
    await ask('天空为什么是蓝色的?')
    await page.getByRole('button', { name: '停止' }).waitFor()
    const turn = await reaches('interrupted')
    await turn.getByText('回答中断').waitFor()
    await turn.getByRole('button', { name: '保留' }).waitFor()
    await turn.getByRole('button', { name: '重新提问' }).waitFor()
    await picture(page, 'chinese-interrupted')
  })

  test('reads an answer out as a whole, and not word by word', async (context) => {
    const { answer, ask, reaches } = await chatSite(context, { script: says(answerText, 30) })
    await ask()
    await reaches('streaming')
    expect(await answer.getAttribute('aria-live')).toBe('polite')
    expect(await answer.getAttribute('aria-busy')).toBe('true')
    await reaches('done')
    expect(await answer.getAttribute('aria-busy')).toBe('false')
  })

  test('keeps still for those who ask for it', async (context) => {
    const { page, ask, reaches } = await chatSite(context, {
      script: steadyTokens(100_000, 30),
      browser: { reducedMotion: 'reduce' },
    })
    await ask()
    await reaches('streaming')
    expect(await page.evaluate('document.getAnimations().length')).toBe(0)
  })

  test.for(['light', 'dark'] as const)(
    'can be read in %s, and fits a narrow phone',
    async (colorScheme, context) => {
      const { page, ask, reaches } = await chatSite(context, {
        script: (_request, nth) => (nth === 0 ? breaksOff(30) : says(`${'long'.repeat(40)} ${answerText}`)),
        limits: { content: 1_000 },
        browser: { colorScheme, viewport: { width: 320, height: 640 }, reducedMotion: 'reduce' },
      })
      expect(await faint(page)).toEqual([])
      await ask('why'.repeat(60))
      await reaches('interrupted')
      expect(await faint(page)).toEqual([])
      await ask()
      await reaches('done')
      expect(await faint(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
      const sizes = await page.getByRole('button').evaluateAll(
        // runs in the page, whose types are not those of here
        (buttons) =>
          (buttons as unknown as { clientHeight: number }[]).map(({ clientHeight }) => clientHeight),
      )
      expect(Math.min(...sizes)).toBeGreaterThanOrEqual(32)
    },
  )
})

describe.each(['Koa', 'Fastify'])('the same page on %s', (host) => {
  test('streams, stops, and takes up a connection that was lost', async (context) => {
    const { answer, ask, network, page, posts, provider, reaches } = await chatSite(context, {
      host,
      script: (_request, nth) => (nth === 0 ? says(answerText, 30) : steadyTokens(100_000, 30)),
    })
    await ask()
    await reaches('streaming')
    network.cut()
    await reaches('reconnecting')
    network.restore()
    await reaches('done')
    expect(await answer.textContent()).toBe(answerText)
    await provider.nextRequest()
    await ask()
    const request = await provider.nextRequest()
    await reaches('streaming')
    await page.getByRole('button', { name: 'Stop' }).click()
    expect(await request.closed).toMatchObject({ byClient: true })
    await reaches('stopped')
    expect(posts()).toBe(2)
    expect(provider.requests).toHaveLength(2)
  })
})

test('there are three of them', () => {
  expect(Object.keys(hosts)).toEqual(['Express', 'Koa', 'Fastify'])
})

function isFocused(element: unknown): boolean {
  return (
    (globalThis as unknown as { document: { activeElement: unknown } }).document.activeElement === element
  )
}

/** Texts whose contrast with what is behind them is under 4.5, as WCAG reckons it. */
function faint(page: Page): Promise<string[]> {
  return page.evaluate(`(() => {
    const channels = (color) => color.match(/[\\d.]+/g).map(Number)
    const light = (color) => {
      const [r, g, b] = channels(color).map((value) => {
        const part = value / 255
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
      })
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    const isOpaque = (color) => (channels(color)[3] ?? 1) === 1
    const behind = (element) => {
      const color = getComputedStyle(element).backgroundColor
      return isOpaque(color) ? color : behind(element.parentElement)
    }
    const texts = [...document.querySelectorAll('body *')].filter(
      (element) =>
        element.checkVisibility() &&
        !element.matches('script, style') &&
        [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== ''),
    )
    return texts.flatMap((element) => {
      const [a, b] = [light(getComputedStyle(element).color), light(behind(element))]
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
      return contrast < 4.5 ? [element.textContent + ': ' + contrast.toFixed(2)] : []
    })
  })()`)
}
