// Puts the page into one file, dist/page.html, which any framework can serve.
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { build } from 'vite'

const read = (name) => readFile(new URL(name, import.meta.url), 'utf8')

const { output } = await build({
  configFile: false,
  logLevel: 'error',
  root: new URL('.', import.meta.url).pathname,
  resolve: { conditions: ['@timebudget/source'] },
  build: { write: false, modulePreload: false, rolldownOptions: { input: 'main.ts' } },
})
const script = output[0].code.trim()
const style = await read('style.css')
const hashOf = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
const policy = [
  "default-src 'none'",
  `script-src ${hashOf(script)}`,
  `style-src ${hashOf(style)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

const page = (await read('index.html'))
  .replace(
    '<meta charset',
    () => `<meta http-equiv="Content-Security-Policy" content="${policy}" />\n    <meta charset`,
  )
  .replace(/<link rel="stylesheet".*>/, () => `<style>${style}</style>`)
  .replace(/<script type="module".*<\/script>/, () => `<script type="module">${script}</script>`)
const folder = new URL('../dist/', import.meta.url)
await mkdir(folder, { recursive: true })
// whole or not at all, for those who build and read it at the same time
const draft = new URL(`page.html.${process.pid}`, folder)
await writeFile(draft, page)
await rename(draft, new URL('page.html', folder))
