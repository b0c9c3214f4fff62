// Runs the built command line as often as it is asked to: starting a process takes longer than most commands do.
// `node command-host.mjs file:///.../packages/cli/dist/`
const [built] = process.argv.slice(2)
const { runCli } = await import(new URL('cli.js', built))
const { lookOf } = await import(new URL('terminal/look.js', built))

let complained = ''
// Node writes them where the command complains
process.on('warning', ({ name, message }) => (complained += `${name}: ${message}\n`))
process.on('disconnect', () => process.exit())

/** Whether anything but its pipes, to the parent and for output, keeps the process from ending. */
const isHeld = () => process.getActiveResourcesInfo().some((resource) => resource !== 'PipeWrap')

process.on('message', async ({ args, env }) => {
  let printed = ''
  complained = ''
  const exitCode = await runCli(args, {
    look: lookOf({}, env),
    print: (text) => (printed += text),
    complain: (text) => (complained += text),
    stopSignal: () => new AbortController().signal,
  })
  // a process of its own would not end before
  while (isHeld()) await new Promise((resolve) => setTimeout(resolve, 2).unref())
  process.send({ exitCode, printed, complained })
})
