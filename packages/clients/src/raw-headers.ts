/** Names and values in turn, as Node and undici have read them. */
export type RawHeaders = readonly (Buffer | string)[]

/** All values of that name, which is in lower case, as a list. */
export function rawHeader(headers: RawHeaders, name: string): string | undefined {
  let values: string | undefined
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const written = headers[index]
    // decoded only where it can be the one: nearly every answer has none
    if (written?.length !== name.length || written.toString('latin1').toLowerCase() !== name) continue
    const value = String(headers[index + 1])
    values = values === undefined ? value : `${values}, ${value}`
  }
  return values
}
