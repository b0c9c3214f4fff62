import type { CodecName } from './codec.ts'
import type { WireDeadline } from './reconcile.ts'
import type { PeerClock } from './skew.ts'

/** Headers as Node hands them out: names in lower case, repeats joined or as an array. */
export type HeaderSource = Readonly<Record<string, string | readonly string[] | undefined>>

/** A header that could not be read; it was ignored. */
export interface Malformed {
  readonly codec: CodecName
  readonly header: string
  /** The first member that could not be read, cut to 64 characters, without control characters. */
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

const nothing: Decoded = Object.freeze({ malformed: Object.freeze([]) })

/** Reads the earliest deadline among the accepted headers; `now` is the wall clock in epoch ms. Never throws. */
export function decodeDeadline(
  _headers: HeaderSource,
  _accept: readonly CodecName[],
  _now: number,
  _options?: DecodeOptions,
): Decoded {
  return nothing
}
