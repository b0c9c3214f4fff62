/**
 * Refuses an argument that is no function, where it would fail only once it is called.
 * @throws TypeError that names the argument.
 */
export function expectFunction(value: unknown, argument: string, example: string): void {
  if (typeof value !== 'function')
    throw new TypeError(`${argument}: expected a function, such as ${example}, got ${describe(value)}`)
}

/**
 * Refuses an argument that lacks a method; a path such as `chat.completions.create` is looked for within.
 * @throws TypeError that names the argument.
 */
export function expectMethod(value: unknown, argument: string, method: string): void {
  const found = method.split('.').reduce<unknown>((within, name) => memberOf(within, name), value)
  if (typeof found !== 'function')
    throw new TypeError(`${argument}: expected an object with ${method}(), got ${describe(value)}`)
}

function memberOf(value: unknown, name: string): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined
  return (value as Readonly<Record<string, unknown>>)[name]
}

/** What somebody has given instead: never its content, which may be a prompt. */
function describe(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`
}
