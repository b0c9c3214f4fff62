import { describe, test } from 'vitest'
import type { AnyClient, Lines } from './any-client.ts'
import { deadlineLines } from './deadline-lines.ts'
import { endingLines } from './ending-lines.ts'
import { faultLines } from './fault-lines.ts'
import { traceLines } from './trace-lines.ts'

export type { AnyClient, Behaviour, Bench, BenchOptions, SeenCall } from './any-client.ts'

const lines: Lines = { ...deadlineLines, ...endingLines, ...faultLines, ...traceLines }

/** What every client of this package does, whatever library and protocol is below it. */
export function everyClientContract({ cannot = {}, ...client }: AnyClient): void {
  const unknown = Object.keys(cannot).filter((line) => !(line in lines))
  if (unknown.length > 0) throw new Error(`no lines of the contract: ${unknown.join(', ')}`)
  describe(`${client.name}, as every client`, () => {
    for (const [line, check] of Object.entries(lines)) {
      const reason = cannot[line]
      test(line, (context) => (reason === undefined ? check(client, context) : context.skip(reason)))
    }
  })
}
