// Every claim about speed, measured side by side: `npm run bench`. See README.md beside this.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { nodes } from './support/nodes.mjs'
import { markdownOf, verdictOf } from './support/report.mjs'
import { sections } from './sections.mjs'

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    node: { type: 'string' },
    quick: { type: 'boolean', default: false },
    save: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
})

const wanted = values.only?.split(',') ?? Object.keys(sections)
for (const name of wanted) {
  if (!Object.hasOwn(sections, name))
    throw new Error(`no section ${name}; there are ${Object.keys(sections).join(', ')}`)
}
const chosen = nodes(values.node?.split(','))
const results = []
for (const name of wanted) {
  for (const node of sections[name].everyNode ? chosen : chosen.slice(-1)) {
    console.log(`\n## ${name}, Node ${node.major}\n`)
    for (const table of await sections[name].run({ node, quick: values.quick })) {
      console.log(markdownOf(table))
      results.push({ section: name, node: node.major, ...table })
    }
  }
}

const verdicts = results.flatMap(({ node, title, rows }) =>
  rows.flatMap(({ name, targets = [] }) =>
    targets
      .map(verdictOf)
      .map((verdict) => ({ ...verdict, text: `Node ${node}, ${title}, ${name}: ${verdict.text}` })),
  ),
)
const others = verdicts.filter(({ isMet }) => !isMet)
const outOfReach = others.filter((verdict) => verdict.isOutOfReach)
console.log(
  `${verdicts.length - others.length} of ${verdicts.length} targets are met, ${outOfReach.length} out of reach.`,
)
for (const { text } of others) console.log(`  ${text}`)

write(values.json ?? new URL('../node_modules/.cache/timebudget-bench/latest.json', import.meta.url), results)
if (values.save) write(new URL('figures.json', import.meta.url), merged(results))

function write(file, tables) {
  if (file instanceof URL) mkdirSync(new URL('.', file), { recursive: true })
  const machine = {
    cpu: cpus()[0].model,
    cores: cpus().length,
    platform: `${process.platform} ${process.arch}`,
  }
  writeFileSync(
    file,
    `${JSON.stringify({ at: new Date().toISOString(), machine, quick: values.quick, tables }, rounded, 2)}\n`,
  )
}

/** What was measured now, in place of what was saved of the same table; everything else stays. */
function merged(tables) {
  const key = ({ section, node, title }) => `${section} ${node} ${title}`
  let saved = []
  try {
    saved = JSON.parse(readFileSync(new URL('figures.json', import.meta.url), 'utf8')).tables
  } catch {
    // the first time
  }
  const all = new Map([...saved, ...tables].map((table) => [key(table), table]))
  return [...all.values()]
}

function rounded(_key, value) {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value
}
