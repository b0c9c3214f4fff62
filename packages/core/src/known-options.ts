/**
 * Refuses a misspelt option, which would otherwise be ignored; `owner` names what it is an option of, where that is not clear.
 * @throws TypeError that names the option which does not exist.
 */
export function refuseUnknownOptions(options: object, known: readonly string[], owner?: string): void {
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue
    throw new TypeError(
      `${owner === undefined ? '' : `${owner}.`}${name}: no such option; there are ${known.join(', ')}`,
    )
  }
}
