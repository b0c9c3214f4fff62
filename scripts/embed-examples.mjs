// Writes into the documents the code of the examples that their blocks show: a block that begins with `// examples/...`.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const block = /^```(ts|tsx)\n\/\/ (examples\/\S+)\n[^]*?^```$/gm

for (const name of readdirSync(`${root}docs`).filter((each) => each.endsWith('.md'))) {
  const path = `${root}docs/${name}`
  const before = readFileSync(path, 'utf8')
  const after = before.replaceAll(block, (_, language, example) => {
    const code = readFileSync(root + example, 'utf8').trimEnd()
    return `\`\`\`${language}\n// ${example}\n${code}\n\`\`\``
  })
  if (after !== before) writeFileSync(path, after)
}
