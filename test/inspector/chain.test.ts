import { expect, test, vi } from 'vitest'
import { openTab } from '../../packages/inspector/test/support/browser.ts'
import { ask } from '../../packages/inspector/test/support/server.ts'
import { startFourHops } from './four-hops.ts'

vi.setConfig({ testTimeout: 60_000 })

test('the waterfall of a request shows what every hop of its chain did', async (context) => {
  const { page, complaints, picture } = await openTab(context, { colorScheme: 'light' })
  const { url } = await startFourHops()
  const { status, body } = await ask(`${url}/ask?question=secret`)
  expect({ status, body }).toEqual({ status: 200, body: 'answer from ranked, no vectors' })

  await page.goto(`${url}/__budget`)
  await page.getByRole('row', { name: '/ask' }).click()
  const waterfall = page.getByRole('table', { name: 'Operations' })
  await waterfall.getByRole('rowheader').nth(12).waitFor()
  const heads = await waterfall.getByRole('rowheader').evaluateAll((cells) =>
    cells.map((cell) => {
      const { style, textContent } = cell as unknown as {
        style: { getPropertyValue(name: string): string }
        textContent: string
      }
      return [Number(style.getPropertyValue('--depth')), textContent]
    }),
  )
  expect(heads).toEqual([
    [0, 'session'],
    [0, 'answer'],
    [1, 'fetch'],
    [2, 'retrieve peer'],
    [3, 'fetch peer'],
    [4, 'embed peer'],
    [4, 'vectors peer'],
    [4, 'rerank peer'],
    [5, 'fetch peer'],
    [6, 'score peer'],
    [6, 'explain peer'],
    [2, 'generate peer'],
    [0, 'audit'],
  ])
  const vectors = waterfall.getByRole('row', { name: 'vectors' })
  expect(await vectors.innerText()).toContain('operation timeout')
  const explain = waterfall.getByRole('row', { name: 'explain' })
  expect(await explain.innerText()).toContain('short circuited')

  await waterfall.getByRole('row', { name: 'answer' }).hover()
  await page.getByRole('heading', { name: 'answer', exact: true }).waitFor()
  await picture('four-hops-light')
  await page.emulateMedia({ colorScheme: 'dark' })
  await picture('four-hops-dark')
  await page.setViewportSize({ width: 390, height: 844 })
  await picture('four-hops-phone')
  await page.getByRole('button', { name: 'Show the whole budget' }).click()
  await waterfall.getByText('deadline 30 s', { exact: true }).waitFor()
  const drawn = async (part: string): Promise<number> => page.locator(`.lane-inner .${part}`).count()
  expect(await drawn('deadline')).toBe(heads.length)
  // ours alone: a peer does not tell what it granted, nor its floors and reserves
  expect(await drawn('granted')).toBe(4)
  expect([await drawn('floor'), await drawn('reserve')]).toEqual([1, 1])
  expect(await page.content()).not.toContain('secret')
  expect(complaints).toEqual([])
})
