import type { Codec } from './codec.ts'

/** What one header says. */
export interface HeaderReading {
  readonly codec: Codec
  /** The least of the values that could be read; `Infinity` if none sets a limit. */
  readonly earliest: number
  /** The first value that could not be read. */
  readonly bad: string | undefined
}

/** A header longer than this is malformed unread; ours is 28 characters if it came twice. */
const longestHeader = 4_096
/** Of a header that came as an array so many values are looked at; what follows is malformed unread. */
const mostValues = 64

/** Reads one header, in time linear to its length and at most to the limits above. */
export function readHeader(codec: Codec, raw: unknown): HeaderReading | undefined {
  if (typeof raw === 'string') return readValue(codec, raw)
  if (!Array.isArray(raw)) return undefined
  const values: readonly unknown[] = raw
  let earliest = Infinity
  let bad: string | undefined
  for (const value of values.slice(0, mostValues)) {
    if (typeof value !== 'string') continue
    const reading = readValue(codec, value)
    earliest = Math.min(earliest, reading.earliest)
    bad ??= reading.bad
  }
  if (values.length > mostValues) bad ??= `${values.length} values`
  return { codec, earliest, bad }
}

function readValue(codec: Codec, value: string): HeaderReading {
  if (value.length > longestHeader) return { codec, earliest: Infinity, bad: value }
  const number = codec.parse(value)
  if (number !== undefined) return { codec, earliest: number, bad: undefined }
  if (codec.ownsList || !value.includes(',')) return { codec, earliest: Infinity, bad: value }
  return readRepeats(codec, value)
}

/** A header that came twice reaches us as one value with commas: each part is judged alone. */
function readRepeats(codec: Codec, value: string): HeaderReading {
  let earliest = Infinity
  let bad: string | undefined
  for (const part of value.split(',')) {
    const number = codec.parse(trimBlanks(part))
    if (number === undefined) bad ??= part
    else earliest = Math.min(earliest, number)
  }
  return { codec, earliest, bad }
}

/** `trim` would also take line breaks and other white space, which are no list syntax. */
function trimBlanks(value: string): string {
  let start = 0
  let end = value.length
  while (start < end && isBlank(value.charCodeAt(start))) start += 1
  while (end > start && isBlank(value.charCodeAt(end - 1))) end -= 1
  return value.slice(start, end)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}
