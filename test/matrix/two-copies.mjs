// As npm may install it: a second copy of the built package, in a folder of its own.
import { cpSync, mkdtempSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as first from '@timebudget/core'

const dist = dirname(fileURLToPath(import.meta.resolve('@timebudget/core')))
const folder = mkdtempSync(join(tmpdir(), 'timebudget-'))
try {
  cpSync(dist, join(folder, 'dist'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  mkdirSync(join(folder, 'node_modules'))
  const ms = dirname(createRequire(join(dist, 'index.js')).resolve('ms/package.json'))
  symlinkSync(ms, join(folder, 'node_modules/ms'), 'junction')
  const second = await import(pathToFileURL(join(folder, 'dist/index.js')).href)

  const deadline = first.Deadline.after(100)
  const error = await first.runWithDeadline(deadline, () =>
    second.operation('x', { timeout: '1m' }, () => new Promise(() => undefined)).catch((reason) => reason),
  )
  process.stdout.write(
    JSON.stringify({
      areTwo: first.Deadline !== second.Deadline,
      isSameReason: error === deadline.reason,
      isRecognised: second.outcomeOf(error),
    }),
  )
} finally {
  rmSync(folder, { recursive: true })
}
