import { expect, test, vi } from 'vitest'
import { offload } from '../src/index.ts'

const packages = vi.hoisted(() => ({ installed: false }))

vi.mock('piscina', () => {
  if (!packages.installed) throw new Error(`Cannot find package 'piscina'`)
  return {
    Piscina: class {
      on(): void {}

      async run(): Promise<string> {
        return 'it ran'
      }
    },
  }
})

test('without piscina the error says what to install, and with it the next task runs', async () => {
  const worker = new URL('./support/offload-worker.mjs', import.meta.url)
  await expect(offload(worker, 1)).rejects.toThrow('npm install piscina')
  packages.installed = true
  await expect(offload(worker, 1)).resolves.toBe('it ran')
})
