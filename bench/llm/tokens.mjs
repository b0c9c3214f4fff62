// What governing a stream costs for each token.
import { fileURLToPath } from 'node:url'
import { interleave, leastOf, medianOf } from '../support/rounds.mjs'
import { withWorkers } from '../support/worker.mjs'

const fileOf = (name) => fileURLToPath(new URL(`${name}-process.mjs`, import.meta.url))

export function runTokens({ node, quick }) {
  return withWorkers((start) => measureTokens(start, { node, quick }))
}

async function measureTokens(start, { node, quick }) {
  const tokens = String(quick ? 10_000 : 100_000)
  const provider = await start(fileOf('provider'), { args: [tokens] })
  const args = [await provider.ask('url'), tokens]
  const reader = await start(fileOf('tokens'), { node: node.path, args })
  const names = await reader.ask('names')
  const measured = await interleave(names, {
    rounds: quick ? 2 : 5,
    measure: async (name) => ({ us: await reader.ask('costOf', name) }),
  })
  const alone = leastOf(measured, names[0], 'us')
  return [
    {
      title: 'A stream of tokens',
      rows: names.map((name) => {
        const least = leastOf(measured, name, 'us')
        const figures = {
          'us CPU a token': medianOf(measured, name, 'us'),
          least,
          'of the SDK alone': least / alone,
        }
        return { name, figures }
      }),
    },
  ]
}
