import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { expect, test, vi } from 'vitest'
import { scratchFolder } from './compiler.ts'
import { type BlockModule, blockModules } from './modules.ts'

// the first block loads the sources of many packages
vi.setConfig({ testTimeout: 60_000 })

const chosen = [
  'docs_guide.md.',
  'docs_guide.zh-CN.md.',
  'packages_core_README.md.',
  'packages_resilience_README.md.',
]
const blocks = blockModules().filter(
  ({ name, text }) => chosen.some((start) => name.startsWith(start)) && !text.includes('listen('),
)

/** Runs a block under a deadline, with `stand-ins.mts` for what is the reader's and `index` for what is called. */
async function run({ name, text }: BlockModule, index: string): Promise<void> {
  using folder = scratchFolder()
  const file = join(folder.path, name)
  writeFileSync(
    file,
    text
      .replaceAll('../../placeholders.mts', '../../stand-ins.mts')
      .replaceAll('fetch(url,', `fetch('${index}',`)
      .replaceAll(/http:\/\/(index\.internal|search)\//g, index),
  )
  using deadline = Deadline.after('20s')
  const { block } = await import(/* @vite-ignore */ file)
  await runWithDeadline(deadline, block)
}

test('most of the guide can be run', () => {
  expect(blocks.length).toBeGreaterThanOrEqual(8)
})

test.for(blocks)('the block $name runs', async (block) => {
  vi.stubEnv('OPENAI_API_KEY', 'any')
  const server = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  try {
    await run(block, `http://127.0.0.1:${port}/`)
  } finally {
    server.close()
    server.closeAllConnections()
    vi.unstubAllEnvs()
  }
})
