/**
 * Refuses a misspelt option, and a value in place of options, which would otherwise be ignored; `owner` names what it is an
 * option of, where that is not clear.
 * @throws TypeError that names the option which does not exist, or the owner that has to be an object.
 */
export function refuseUnknownOptions(options: object, known: readonly string[], owner?: string): void {
  const given: unknown = options
  if (typeof given !== 'object' || given === null)
    throw new TypeError(`${owner ?? 'options'}: expected an object with ${known.join(', ')}`)
  // not Object.keys: it makes an array of 60 bytes for every operation
  for (const name in options) {
    if (known.includes(name) || !Object.hasOwn(options, name)) continue
    throw new TypeError(
      `${owner === undefined ? '' : `${owner}.`}${name}: no such option; there are ${known.join(', ')}`,
    )
  }
}
