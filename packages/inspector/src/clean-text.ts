/** What is kept of a name that comes from a user's code or from a peer. */
export const longestName = 96

// control and format characters, line and paragraph ends: a name must not look like another one
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** A text as it may be shown, of at most so many characters; what nobody could see becomes `�`. */
export function cleanText(text: unknown, longest: number = longestName): string {
  const given = typeof text === 'string' ? text : ''
  return shorten(given, longest).replace(unseen, '\ufffd')
}

/** The same text if it is short enough; else a copy of its beginning, since a slice would keep all of it alive. */
export function shorten(text: string, longest: number = longestName): string {
  if (text.length <= longest) return text
  return Buffer.from(`${text.slice(0, longest - 1)}…`, 'utf16le').toString('utf16le')
}
