import type { Command, Terminal } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { judge } from '../request/verdict.ts'
import { warmUp } from '../request/warm-up.ts'
import { timeText } from '../terminal/time-text.ts'
import { diagnose } from './diagnosis.ts'
import { type Examination, examine } from './examination.ts'
import { type DoctorFlags, doctorHelp, readDoctorFlags } from './flags.ts'
import { Leaf } from './leaf.ts'
import { checkText, closingText, countStates, doctorJson, headText } from './report.ts'

/** `timebudget doctor`. */
export const doctorCommand: Command = async function run(args, terminal) {
  const flags = readDoctorFlags(args)
  if (flags === undefined) {
    terminal.print(doctorHelp)
    return exitCodes.ok
  }
  const stop = terminal.stopSignal()
  await warmUp()
  const leaf = flags.leaf === undefined ? undefined : await Leaf.listen(flags.leaf, flags.upstream)
  try {
    return await treat(flags, { terminal, stop, leaf })
  } finally {
    await leaf?.close()
  }
}

async function treat(
  flags: DoctorFlags,
  {
    terminal,
    stop,
    leaf,
  }: { readonly terminal: Terminal; readonly stop: AbortSignal; readonly leaf: Leaf | undefined },
): Promise<number> {
  const { target, patience, json, ascii } = flags
  const look = ascii ? { ...terminal.look, unicode: false } : terminal.look
  const examination = await examine(target, { patience, leaf, stop })
  if (stop.aborted) return exitCodes.stopped
  const nothing = whyNoAnswer(examination, patience)
  if (nothing !== undefined) {
    terminal.complain(`timebudget doctor: ${nothing}\n`)
    return exitCodes.connection
  }
  if (!json) terminal.print(headText(target, examination, look))
  const diagnoses = await diagnose(examination, stop, (diagnosis) => {
    if (!json) terminal.print(checkText(diagnosis, look))
  })
  const found = countStates(diagnoses).fails > 0 ? exitCodes.failed : exitCodes.ok
  const exitCode = stop.aborted ? exitCodes.stopped : found
  const { usual } = examination
  terminal.print(
    json
      ? `${JSON.stringify(doctorJson(diagnoses, { target, usual, exitCode }), null, 2)}\n`
      : closingText(diagnoses, look),
  )
  return exitCode
}

/** Why there is nothing to examine, if there is nothing. */
function whyNoAnswer({ plain }: Examination, patience: number): string | undefined {
  if (plain.ending === 'complete') return undefined
  if (plain.ending === 'gave_up')
    return `no answer within ${timeText(patience)} to a request without a deadline; --patience waits longer`
  return judge(plain, Infinity).because
}
