import type { Codec } from './codec.ts'
import { formatSeconds } from './seconds.ts'
import { parseDigits } from './integer.ts'

/**
 * `Prefer: wait=10` (RFC 7240): whole seconds. The first `wait` counts, other preferences say nothing, and
 * neither does `wait=0`: a preference must not make a request fail.
 */
export const preferWait: Codec = {
  name: 'prefer-wait',
  header: 'prefer',
  kind: 'relative',
  ownsList: true,
  parse(value) {
    let start = 0
    while (start < value.length) {
      const end = endOfPreference(value, start)
      const wait = waitOf(value.slice(start, end))
      if (wait !== 'another preference') return wait
      start = end + 1
    }
    return Infinity
  },
  format(ms) {
    const seconds = formatSeconds(ms)
    return seconds === undefined ? undefined : `wait=${seconds}`
  },
}

/** Where the next comma outside quotes is, or the end. */
function endOfPreference(value: string, start: number): number {
  let quoted = false
  for (let index = start; index < value.length; index += 1) {
    const character = value[index]
    if (character === '"') quoted = !quoted
    else if (character === '\\' && quoted) index += 1
    else if (character === ',' && !quoted) return index
  }
  return value.length
}

function waitOf(preference: string): number | undefined | 'another preference' {
  const semicolon = preference.indexOf(';')
  const bare = semicolon === -1 ? preference : preference.slice(0, semicolon)
  const equals = bare.indexOf('=')
  const name = equals === -1 ? bare : bare.slice(0, equals)
  if (name.trim().toLowerCase() !== 'wait') return 'another preference'
  if (equals === -1) return undefined
  const seconds = parseDigits(bare.slice(equals + 1).trim())
  if (seconds === undefined) return undefined
  return seconds === 0 ? Infinity : seconds * 1000
}
