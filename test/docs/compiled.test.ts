import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { compile, scratchFolder } from './compiler.ts'
import { blockModules } from './modules.ts'
import { optionTables, optionTypes, tablesModule } from './option-tables.ts'

test('it is known whose options each table of options lists', () => {
  const unknown = optionTables().filter(({ place }) => optionTypes[place] === undefined)
  expect(unknown, 'say so in option-tables.ts').toEqual([])
})

test('every block of code in the guides compiles, and every option in their tables exists', async () => {
  using folder = scratchFolder()
  const modules = new Map(blockModules().map((module) => [module.name, module]))
  const tables = optionTables().filter(({ place }) => optionTypes[place] !== undefined)
  for (const { name, text } of modules.values()) writeFileSync(join(folder.path, name), text)
  writeFileSync(join(folder.path, 'tables.mts'), tablesModule(tables))

  const faults = (await compile(folder.path)).flatMap(({ file, line, text }) => {
    const place = file === 'tables.mts' ? tables[line - 2]?.place : modules.get(file)?.placeOf(line)
    const isOfTheText = modules.has(file) && place === undefined
    return isOfTheText ? [] : [`${place ?? `${file}:${line}`} ${text}`]
  })

  expect(faults).toEqual([])
  expect(modules.size).toBeGreaterThan(60)
  expect(tables.length).toBeGreaterThan(15)
}, 120_000)
