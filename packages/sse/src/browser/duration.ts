/** A length of time: a number is milliseconds, a string one number and its unit. */
export type Duration = number | `${number}ms` | `${number}s` | `${number}m`

/** @throws TypeError that names the option when the duration is not positive or cannot be read. */
export function milliseconds(duration: Duration, option: string): number {
  const [, amount, unit] = /^(.+?)(ms|s|m|)$/.exec(String(duration)) ?? []
  const value = Number(amount) * (unit === 's' ? 1_000 : unit === 'm' ? 60_000 : 1)
  if (value > 0) return value
  throw new TypeError(`${option}: expected a duration such as 1500 or '1.5s'`)
}
