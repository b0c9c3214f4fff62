import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'

const folder = new URL('../../../node_modules/.cache/chat-page/', import.meta.url)
const looks = [
  { name: 'phone', viewport: { width: 390, height: 844 } },
  { name: 'desktop', viewport: { width: 1_280, height: 800 } },
]

/** Keeps pictures of the page as it is, for people to look at: phone and desktop, light and dark. */
export async function picture(page: Page, name: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const { name: device, viewport } of looks) {
    await page.setViewportSize(viewport)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const path = fileURLToPath(new URL(`${name}-${device}-${colorScheme}.png`, folder))
      await page.screenshot({ path, animations: 'disabled' })
    }
  }
  await page.emulateMedia({ colorScheme: 'light' })
}
