import type { Look } from './look.ts'

const codes = { red: 31, green: 32, yellow: 33, blue: 34, cyan: 36, grey: 90, bold: 1 } as const

/** What a text can be painted in. */
export type Paint = keyof typeof codes

/** The text in that colour, where the terminal has colours. */
export function paint(text: string, colour: Paint, { colour: hasColour }: Look): string {
  return hasColour && text !== '' ? `\u{1b}[${codes[colour]}m${text}\u{1b}[0m` : text
}
