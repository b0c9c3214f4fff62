import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'

const folder = new URL('../../../node_modules/.cache/chat-page/', import.meta.url)
const looks = [
  { name: 'phone-dark', viewport: { width: 390, height: 844 }, colorScheme: 'dark' },
  { name: 'desktop-light', viewport: { width: 1_280, height: 800 }, colorScheme: 'light' },
] as const

/** Keeps pictures of the page as it is, for people to look at. */
export async function picture(page: Page, name: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const { name: look, viewport, colorScheme } of looks) {
    await page.setViewportSize(viewport)
    await page.emulateMedia({ colorScheme })
    const path = fileURLToPath(new URL(`${name}-${look}.png`, folder))
    await page.screenshot({ path, animations: 'disabled' })
  }
}
