#!/usr/bin/env node
import { runCli } from './cli.ts'

void runCli(process.argv.slice(2), {
  print: (text) => process.stdout.write(text),
  complain: (text) => process.stderr.write(text),
}).then((exitCode) => {
  process.exitCode = exitCode
})
