import type { Command } from '../command.ts'
import { exitCodeOf } from '../request/verdict.ts'
import { warmUp } from '../request/warm-up.ts'
import { probeHelp, readProbeFlags } from './flags.ts'
import { probeMany } from './many.ts'
import { probe } from './probe.ts'
import { probeJson } from './probe-json.ts'
import { probeReport } from './probe-report.ts'
import { summaryExitCode, summaryJson, summarize } from './summary.ts'
import { summaryReport } from './summary-report.ts'

/** `timebudget probe`. */
export const probeCommand: Command = async function run(args, terminal) {
  const flags = readProbeFlags(args)
  if (flags === undefined) {
    terminal.print(probeHelp)
    return 0
  }
  const stop = terminal.stopSignal()
  await warmUp()
  const look = flags.ascii ? { ...terminal.look, unicode: false } : terminal.look
  if (flags.count === 1) {
    const result = await probe(flags, stop)
    terminal.print(
      flags.json ? jsonText(probeJson(result, flags.target)) : probeReport(result, flags.target, look),
    )
    return exitCodeOf(result.outcome)
  }
  const { probes, took } = await probeMany(flags, stop, (done) =>
    terminal.progress?.(done === flags.count ? '' : `${done} of ${flags.count}`),
  )
  if (stop.aborted) terminal.progress?.('')
  const summary = summarize(probes, flags, took)
  terminal.print(flags.json ? jsonText(summaryJson(summary, flags)) : summaryReport(summary, flags, look))
  return summaryExitCode(summary)
}

function jsonText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
