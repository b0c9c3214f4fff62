import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { localProvider, type LocalProviderOptions, neverAnswers } from '@timebudget/llm/testing'
import { afterEach, expect, test, vi } from 'vitest'
import { scratchFolder } from './compiler.ts'
import { guides } from './documents.ts'

// the first example loads the sources of many packages
vi.setConfig({ testTimeout: 60_000 })

const examples = guides.flatMap(({ path, blocks }) =>
  blocks
    .filter(({ language, code }) => language === 'ts' && code.includes("answers.run('"))
    .map(({ code, line }) => ({ place: `${path}:${line}`, code })),
)

afterEach(() => {
  vi.unstubAllEnvs()
})

/** Runs an example against a provider of our own, within a budget; what it made of the answer. */
async function run(code: string, { budget, ...options }: LocalProviderOptions & { readonly budget: string }) {
  await using provider = await localProvider(options)
  using folder = scratchFolder()
  vi.stubEnv('OPENAI_BASE_URL', provider.openaiUrl)
  vi.stubEnv('OPENAI_API_KEY', 'any')
  const file = join(folder.path, 'model.ts')
  writeFileSync(file, `${code}\nexport const said = { text, rung, degraded }\n`)
  using deadline = Deadline.after(budget)
  const { said } = await runWithDeadline(deadline, () => import(/* @vite-ignore */ file))
  return said
}

test('the model of the READMEs is asked in both languages', () => {
  expect(examples.map(({ place }) => place.replace(/:.*/, ''))).toEqual(['README.md', 'README.zh-CN.md'])
})

test.for(examples)('the ladder of $place answers with its first model', async ({ code }) => {
  const said = await run(code, { budget: '30s' })
  expect(said).toMatchObject({ rung: 'gpt-5', degraded: false })
  expect(said.text).not.toBe('')
})

test.for(examples)(
  'the ladder of $place has something to say if no model answers in time',
  async ({ code }) => {
    // a first time, since the first errors of a process have their source maps read, which takes longer than the rule has
    await run(code, { budget: '3s', script: neverAnswers() }).catch(() => undefined)
    const said = await run(code, { budget: '3s', script: neverAnswers() })
    expect(said).toMatchObject({ rung: 'rule', degraded: true })
    expect(code).toContain(said.text)
  },
)
