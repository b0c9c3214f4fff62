/** One element of an SVG, with what is in it. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  ...content: readonly string[]
): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(tidy(value))}"`)
  return content.length === 0
    ? `<${name}${written.join('')}/>`
    : `<${name}${written.join('')}>${content.join('')}</${name}>`
}

/** Text for between two tags. */
export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** A tenth of a pixel is finer than anybody sees. */
function tidy(value: string | number): string {
  return typeof value === 'number' ? String(Number(value.toFixed(1))) : value
}

/** Round values from 0 to at least `most`, at most seven of them. */
export function ticksTo(most: number): readonly number[] {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 0.001)))
  const rough = [0.2, 0.5, 1, 2].map((factor) => factor * power)
  const step = rough.find((candidate) => most / candidate <= 6) ?? 2 * power
  const count = Math.max(1, Math.ceil(most / step - 1e-9))
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(6)))
}
