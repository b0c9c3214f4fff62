// After tsc, in the package's folder: what of the page is no TypeScript goes beside what is.
import { copyFileSync, readdirSync } from 'node:fs'

for (const name of readdirSync('src/page')) {
  if (/\.(html|css|svg)$/.test(name)) copyFileSync(`src/page/${name}`, `dist/page/${name}`)
}
