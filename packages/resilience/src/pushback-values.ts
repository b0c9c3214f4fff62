/** Milliseconds in a header's value, counted from now; `undefined` for what cannot be read. `now` is Unix epoch ms. */
export type ReadValue = (value: string, now: number) => number | undefined

const plainNumber = /^\d+(?:\.\d+)?$/
const wholeNumber = /^\d+$/

// 2001-09-09 in Unix seconds: nobody is told to wait for thirty years
const leastEpochSeconds = 1e9

/** `Retry-After: 3` or a date in one of HTTP's three forms. */
export const readRetryAfter: ReadValue = (value, now) => readSeconds(value, now) ?? readDate(value, now)

/** Seconds; `1.5` is read too, since some send it. */
const readSeconds: ReadValue = (value) => (plainNumber.test(value) ? Number(value) * 1000 : undefined)

/** `retry-after-ms: 150`. */
export const readMilliseconds: ReadValue = (value) => (plainNumber.test(value) ? Number(value) : undefined)

/** Seconds from now, a Unix time in seconds as GitHub sends it, or `6m0s` as OpenAI does. */
export const readReset: ReadValue = (value, now) => {
  const delay = readSeconds(value, now)
  if (delay === undefined) return readUnits(value)
  return delay < leastEpochSeconds * 1000 ? delay : Math.max(0, delay - now)
}

/** `grpc-retry-pushback-ms`: what is negative or cannot be read forbids to retry (gRFC A6). */
export const readGrpcPushback: ReadValue = (value) => (wholeNumber.test(value) ? Number(value) : Infinity)

const httpDate = /^[A-Z][a-z]{2,8}, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/
const asctimeDate = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/** Milliseconds until an HTTP date, 0 if it has passed. */
function readDate(value: string, now: number): number | undefined {
  const at = parseHttpDate(value)
  return at === undefined ? undefined : Math.max(0, at - now)
}

/** Unix epoch milliseconds of an HTTP date; Date.parse alone takes nearly anything for a date. */
export function parseHttpDate(value: string): number | undefined {
  const at = Date.parse(httpDate.test(value) ? value : asctimeDate.test(value) ? `${value} GMT` : '')
  return Number.isNaN(at) ? undefined : at
}

const unit = /(\d+(?:\.\d+)?)(ms|h|m|s)/y
const millisecondsOf: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** `1s`, `6m0s`, `120ms`: durations as Go writes them. */
function readUnits(value: string): number | undefined {
  let total = 0
  unit.lastIndex = 0
  for (let read = 0; read < value.length; read = unit.lastIndex) {
    const match = unit.exec(value)
    if (match === null) return undefined
    total += Number(match[1]) * (millisecondsOf[match[2] ?? ''] ?? Number.NaN)
  }
  return value === '' ? undefined : total
}
