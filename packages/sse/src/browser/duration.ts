/** A length of time: a number is milliseconds, a string one number and its unit. */
export type Duration = number | `${number}ms` | `${number}s` | `${number}m`

/** @throws TypeError that names the option when the duration is not positive or cannot be read. */
export function milliseconds(duration: Duration, option: string): number {
  const [, amount, unit] = /^(.+?)(ms|s|m|)$/.exec(String(duration)) ?? []
  const value = Number(amount) * ({ s: 1_000, m: 60_000 }[unit ?? ''] ?? 1)
  if (value > 0) return value
  throw new TypeError(`${option}: expected a duration such as '1.5s'`)
}
