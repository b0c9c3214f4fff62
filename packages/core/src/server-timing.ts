import type { LedgerEntry } from './ledger.ts'
import { isOutcome } from './outcome.ts'

/** What one entry of a Server-Timing header tells of an operation; milliseconds. */
export type TimingReport = Pick<LedgerEntry, 'path' | 'start' | 'spent' | 'outcome'>

const mostEntries = 64
const mostCharacters = 4096

/**
 * Server-Timing for a ledger, one entry an operation: `retrieve;dur=12.3;desc="ok";start=0.4`. At most 64 entries and
 * 4 KiB; `undefined` for an empty ledger. Names are reduced to token characters, so none can end the header.
 */
export function formatServerTiming(entries: readonly LedgerEntry[]): string | undefined {
  let header = ''
  for (const entry of entries.slice(0, mostEntries)) {
    const duration = entry.spent === undefined ? '' : `;dur=${tenths(entry.spent)}`
    const part = `${token(entry.path) || '_'}${duration};desc="${entry.outcome ?? 'running'}";start=${tenths(entry.start)}`
    if (header.length + part.length + 2 > mostCharacters) break
    header += header === '' ? part : `, ${part}`
  }
  return header === '' ? undefined : header
}

/** Reads what `formatServerTiming` or anybody else wrote: what does not fit is skipped, and nothing throws. */
export function parseServerTiming(header: string): readonly TimingReport[] {
  const reports: TimingReport[] = []
  for (const part of splitOutsideQuotes(header.slice(0, mostCharacters), ',', {
    isCut: header.length > mostCharacters,
  })) {
    const report = parseEntry(part)
    if (report !== undefined) reports.push(report)
    if (reports.length === mostEntries) break
  }
  return reports
}

function parseEntry(part: string): TimingReport | undefined {
  const [name, ...parameters] = splitOutsideQuotes(part, ';', { isCut: false })
  const path = token(name?.trim() ?? '')
  if (path === '') return undefined
  let start = 0
  let spent: number | undefined
  let description: string | undefined
  for (const parameter of parameters) {
    const equals = parameter.indexOf('=')
    if (equals < 0) continue
    const value = unquote(parameter.slice(equals + 1).trim())
    switch (parameter.slice(0, equals).trim().toLowerCase()) {
      case 'dur':
        spent = duration(value)
        break
      case 'start':
        start = duration(value) ?? 0
        break
      case 'desc':
        description = value
        break
      default:
    }
  }
  // an entry that is none of ours has a duration and no outcome: a stranger's finished work
  const outcome = isOutcome(description) ? description : undefined
  return {
    path,
    start,
    spent,
    outcome: outcome ?? (spent !== undefined && description !== 'running' ? 'ok' : undefined),
  }
}

/** The parts between separators that stand in no quoted string; without the last one where the text was cut in it. */
function splitOutsideQuotes(
  text: string,
  separator: string,
  { isCut }: { readonly isCut: boolean },
): string[] {
  const parts: string[] = []
  let begun = 0
  let isQuoted = false
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index]
    if (character === '"') isQuoted = !isQuoted
    else if (character === '\\' && isQuoted) index += 1
    else if (character === separator && !isQuoted) {
      parts.push(text.slice(begun, index))
      begun = index + 1
    }
  }
  if (!isCut) parts.push(text.slice(begun))
  return parts
}

/** A day: what a peer claims beyond it is no duration of a request. */
const longestDuration = 86_400_000

function duration(text: string): number | undefined {
  const value = Number(text === '' ? Number.NaN : text)
  return value >= 0 && value <= longestDuration ? value : undefined
}

function tenths(milliseconds: number): string {
  return String(Math.round(milliseconds * 10) / 10)
}

function unquote(text: string): string {
  return text.startsWith('"') && text.endsWith('"') && text.length > 1 ? text.slice(1, -1) : text
}

/** The letters, digits and marks that RFC 9110 allows in a token; anything else becomes `_`. */
function token(name: string): string {
  return name.slice(0, 128).replace(/[^\w!#$%&'*+\-.^`|~]/g, '_')
}
