import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, type TestContext } from 'vitest'
import { findProgram, requireOrSkip } from '../../../../test/support/requirements.ts'
import { buildPage } from './built-page.ts'
import { onEnd } from './server.ts'

const screenshots = fileURLToPath(
  new URL('../../../../node_modules/.cache/inspector-screenshots/', import.meta.url),
)

let launching: Promise<Browser> | undefined
afterAll(async () => {
  const browser = await launching
  await browser?.close()
})

/** A tab, and everything its page has complained of: errors, warnings, what the policy has blocked. */
export interface Tab {
  readonly page: Page
  readonly complaints: string[]
  /** Writes a picture to look at. */
  picture(name: string): Promise<void>
}

export async function openTab(context: TestContext, options: BrowserContextOptions = {}): Promise<Tab> {
  const program = requireOrSkip(context, findProgram('chromium'), 'apt-get install chromium')
  buildPage()
  launching ??= chromium.launch({ executablePath: program, args: ['--no-sandbox'] })
  const browser = await launching
  const tab = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  onEnd(() => tab.close())
  const page = await tab.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  return {
    page,
    complaints,
    async picture(name) {
      mkdirSync(screenshots, { recursive: true })
      await page.screenshot({ path: `${screenshots}${name}.png` })
    },
  }
}
