import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

const entry = new URL('../src/browser/index.ts', import.meta.url).pathname

test("the page's client is under 4 kB gzipped, and needs nothing of Node's", async () => {
  const { outputFiles, metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    write: false,
    metafile: true,
  })
  expect(gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).length).toBeLessThan(4_000)
  const inputs = Object.keys(metafile.inputs)
  expect(inputs.filter((path) => !/sse\/src\/browser\/|eventsource-parser\//.test(path))).toEqual([])
  expect(Object.values(metafile.outputs).flatMap(({ imports }) => imports)).toEqual([])
})
