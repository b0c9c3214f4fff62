import { attemptHeader } from './attempt.ts'
import type { Codec, CodecName } from './codec.ts'
import { codecs } from './codecs.ts'
import { readHeader } from './header.ts'
import type { HeaderReading } from './header.ts'
import { earliestDeadline } from './reconcile.ts'
import type { WireDeadline } from './reconcile.ts'
import type { PeerClock } from './skew.ts'

/** Headers as Node hands them out: names in lower case, repeats joined or as an array. */
export type HeaderSource = Readonly<Record<string, string | readonly string[] | undefined>>

/** A header that could not be read, or a part of it; that part was ignored. */
export interface Malformed {
  readonly codec: CodecName
  readonly header: string
  /** The first value that could not be read, cut to 64 characters, without control characters. */
  readonly value: string
}

/** What `decodeDeadline` may be told. */
export interface DecodeOptions {
  /** How far a peer's clock may be off, ms; default 50. */
  readonly skewTolerance?: number
  /** The sender's transit history; without it no waiting time is charged. */
  readonly peer?: PeerClock
}

/** What the headers of one request say. */
export interface Decoded {
  readonly deadline?: WireDeadline
  /** At most one entry a header; the same frozen empty array whenever there is none. */
  readonly malformed: readonly Malformed[]
}

const noneMalformed: readonly Malformed[] = Object.freeze([])
const nothing: Decoded = Object.freeze({ malformed: noneMalformed })
const noOptions: DecodeOptions = Object.freeze({})

/** The headers that tell of a deadline in the accepted codecs, and of the attempt. */
export function headersOf(accept: readonly CodecName[]): ReadonlySet<string> {
  return new Set([...accept.map((name) => codecs[name].header), attemptHeader])
}

/** Whether any of them is there at all: most requests carry none. To look for each by its name costs four times as much. */
export function carriesAny(headers: HeaderSource, names: ReadonlySet<string>): boolean {
  for (const name in headers) if (names.has(name)) return true
  return false
}

/**
 * Reads the earliest deadline among the accepted headers; `now` is the wall clock in epoch ms.
 * Never throws; what is malformed is ignored and listed, and never means that a request has expired.
 */
export function decodeDeadline(
  headers: HeaderSource,
  accept: readonly CodecName[],
  now: number,
  options: DecodeOptions = noOptions,
): Decoded {
  let readings: HeaderReading[] | undefined
  let malformed: Malformed[] | undefined
  for (const name of accept) {
    const codec = codecs[name]
    const raw = headers[codec.header]
    // Own properties only: a polluted prototype must not set deadlines.
    if (raw === undefined || !Object.hasOwn(headers, codec.header)) continue
    const reading = readHeader(codec, raw)
    if (reading === undefined) continue
    if (reading.bad !== undefined) (malformed ??= []).push(describe(codec, reading.bad))
    if (reading.earliest !== Infinity) (readings ??= []).push(reading)
  }
  const deadline = readings && earliestDeadline(readings, now, options)
  if (deadline !== undefined) return { deadline, malformed: malformed ?? noneMalformed }
  return malformed === undefined ? nothing : { malformed }
}

function describe(codec: Codec, bad: string): Malformed {
  return { codec: codec.name, header: codec.header, value: printable(bad.slice(0, 64)) }
}

/** Goes into logs and error bodies, so nothing in it may steer a terminal. */
function printable(value: string): string {
  let printed = ''
  for (const character of value) {
    const code = character.charCodeAt(0)
    const isControl = code < 0x20 || (code >= 0x7f && code < 0xa0)
    if (!isControl) printed += character
  }
  return printed
}
