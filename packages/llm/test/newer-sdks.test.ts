import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'vitest'
import { nodeMatrix } from '../../../test/support/node-matrix.ts'
import { requireOrSkip } from '../../../test/support/requirements.ts'
import { leavingCases, stayingCases } from './contract/cases.ts'
import type { Played, ToPlay } from './contract/newer-process.ts'

const script = fileURLToPath(new URL('contract/newer-process.ts', import.meta.url))

// openai 7 and ai 7 need it
const node = nodeMatrix().find(({ version }) => Number(version.split('.')[0]) >= 22)

test(
  'openai 7 and ai 7 keep the contract as their elders do',
  { timeout: 240_000, retry: 2 },
  async (context) => {
    const path = requireOrSkip(context, node?.path, 'node scripts/install-node-matrix.mjs')
    const leaving = leavingCases({ cancelsOnBreak: true })
    const all = [...stayingCases, ...leaving]
    const toPlay: ToPlay = all.map((each) => ({
      name: each.name,
      mode: each.mode,
      wantsToBeAlone: leaving.includes(each),
    }))
    const options = ['--conditions=@timebudget/source', '--no-warnings']
    const { stdout } = await promisify(execFile)(path, [...options, script, JSON.stringify(toPlay)], {
      maxBuffer: 2 ** 26,
    })
    const played = JSON.parse(stdout) as readonly Played[]
    for (const { surface, name, mode, seen } of played) {
      try {
        all.find((other) => other.name === name && other.mode === mode)?.expectation(seen, surface)
      } catch (error) {
        throw new Error(`${surface.name}, ${name} (${mode}): ${JSON.stringify(seen)}`, { cause: error })
      }
    }
    context.expect(new Set(played.map(({ surface }) => surface.name)).size).toBe(3)
    const stayed = played.filter(({ name }) => !leaving.some((each) => each.name === name))
    context.expect(stayed).toHaveLength(3 * stayingCases.length)
  },
)
