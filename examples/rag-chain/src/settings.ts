/** A setting from the environment that has no default; throws if it is missing. */
export function required(name: string): string {
  const value = process.env[name]
  if (value === undefined || value === '') throw new Error(`${name} is not set`)
  return value
}

/** A number from the environment; throws if it is there and is none. */
export function numeric(name: string, fallback: number): number {
  const value = Number(process.env[name] ?? fallback)
  if (Number.isNaN(value)) throw new Error(`${name} is not a number: ${process.env[name]}`)
  return value
}
