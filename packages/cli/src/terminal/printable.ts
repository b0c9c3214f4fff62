/**
 * A stranger's text as it may be shown: in one line, without anything that steers a terminal (control characters) or
 * turns what is around it (marks of writing direction), at most `most` characters.
 */
export function printable(text: string, most: number): string {
  const clean = text
    .slice(0, most * 4)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/[\p{Cf}\p{Cs}\p{Co}]/gu, '')
    .trim()
  return clipped(clean, most)
}

/** The text, or its beginning where it is too long, which an ellipsis shows. */
export function clipped(text: string, most: number, ellipsis = '…'): string {
  const characters = Array.from(text)
  return characters.length <= most
    ? text
    : characters.slice(0, Math.max(0, most - ellipsis.length)).join('') + ellipsis
}
