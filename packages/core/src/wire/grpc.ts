import type { Codec } from './codec.ts'
import { parseDigits } from './integer.ts'

interface Unit {
  readonly letter: string
  readonly perMillisecond: number
}

/** Finest first, as writing tries them. */
const units: readonly Unit[] = [
  { letter: 'n', perMillisecond: 1_000_000 },
  { letter: 'u', perMillisecond: 1_000 },
  { letter: 'm', perMillisecond: 1 },
  { letter: 'S', perMillisecond: 1 / 1_000 },
  { letter: 'M', perMillisecond: 1 / 60_000 },
  { letter: 'H', perMillisecond: 1 / 3_600_000 },
]

const mostOfAnyUnit = 99_999_999

/** `grpc-timeout`: 1 to 8 digits and one unit letter; 0 means that nothing is left. */
export const grpcTimeout: Codec = {
  name: 'grpc-timeout',
  header: 'grpc-timeout',
  kind: 'relative',
  ownsList: false,
  parse(value) {
    const digits = value.length - 1
    if (digits < 1 || digits > 8) return undefined
    const count = parseDigits(value, digits)
    return count === undefined ? undefined : toMilliseconds(count, value.charCodeAt(digits))
  },
  format(ms) {
    for (const { letter, perMillisecond } of units) {
      const count = Math.floor(ms * perMillisecond)
      if (count <= mostOfAnyUnit) return `${Math.max(count, 1)}${letter}`
    }
    return `${mostOfAnyUnit}H`
  },
}

function toMilliseconds(count: number, unit: number): number | undefined {
  switch (unit) {
    case 0x48: // H
      return count * 3_600_000
    case 0x4d: // M
      return count * 60_000
    case 0x53: // S
      return count * 1_000
    case 0x6d: // m
      return count
    case 0x75: // u
      return count / 1_000
    case 0x6e: // n
      return count / 1_000_000
    default:
      return undefined
  }
}
