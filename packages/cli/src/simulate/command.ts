import { writeFile } from 'node:fs/promises'
import type { Command } from '../command.ts'
import { overloadChart } from './overload-chart.ts'
import { readSimulateFlags, simulateHelp } from './flags.ts'
import { resultsTable } from './results-table.ts'
import { simulate } from './simulate.ts'

/** `timebudget simulate`. */
export const simulateCommand: Command = async function run(args, terminal) {
  const { help, json, svg, options } = readSimulateFlags(args)
  if (help) {
    terminal.print(simulateHelp)
    return
  }
  const results = await simulate(options)
  terminal.print(json ? `${JSON.stringify({ options, results }, null, 2)}\n` : resultsTable(results, options))
  if (svg !== undefined) await writeChart(svg, overloadChart(results, options))
}

async function writeChart(file: string, chart: string): Promise<void> {
  try {
    await writeFile(file, chart)
  } catch (error) {
    throw new Error(`--svg: cannot write ${file}`, { cause: error })
  }
}
