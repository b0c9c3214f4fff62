#!/usr/bin/env node
import { runCli } from './cli.ts'
import { lookOf } from './terminal/look.ts'

const { stdout, stderr } = process

stdout.on('error', (error: NodeJS.ErrnoException) => {
  // `| head` has read enough
  if (error.code === 'EPIPE') process.exit()
  throw error
})

function stopSignal(): AbortSignal {
  const stop = new AbortController()
  // once: whoever presses Ctrl-C a second time does not want to wait
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  return stop.signal
}

void runCli(process.argv.slice(2), {
  look: lookOf(stdout, process.env),
  print: (text) => stdout.write(text),
  complain: (text) => stderr.write(text),
  stopSignal,
  ...(stderr.isTTY ? { progress: (text: string) => stderr.write(`\r\u{1b}[K${text}`) } : {}),
}).then((exitCode) => {
  process.exitCode = exitCode
})
