import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { guides, root } from './documents.ts'
import { exampleShownBy } from './embedded.ts'

const shown = guides.flatMap(({ path, blocks }) =>
  blocks.flatMap(({ code, line }) => {
    const example = exampleShownBy(code)
    return example === undefined ? [] : [{ place: `${path}:${line}`, example, code }]
  }),
)

test.for(shown)('the code at $place is that of $example', ({ example, code }) => {
  expect(existsSync(root + example), 'no such file').toBe(true)
  const file = readFileSync(root + example, 'utf8')
  expect(code, 'node scripts/embed-examples.mjs').toBe(`// ${example}\n${file.trimEnd()}`)
})

test('every recipe is shown', () => {
  const recipes = readdirSync(`${root}examples/recipes/src`).map((name) => `examples/recipes/src/${name}`)
  expect(shown.map(({ example }) => example)).toEqual(expect.arrayContaining(recipes))
})
