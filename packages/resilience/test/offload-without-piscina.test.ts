import { expect, test, vi } from 'vitest'
import { offload } from '../src/index.ts'

vi.mock('piscina', () => {
  throw new Error(`Cannot find package 'piscina'`)
})

test('without piscina the error says what to install, every time', async () => {
  const worker = new URL('./support/offload-worker.mjs', import.meta.url)
  for (let i = 0; i < 2; i += 1) {
    await expect(offload(worker, 1)).rejects.toThrow('npm install piscina')
  }
})
