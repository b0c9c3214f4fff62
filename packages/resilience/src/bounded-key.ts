const longest = 256

/**
 * The first 256 characters of a key that may be a stranger's, so that however long it is, it takes no more memory.
 * @throws TypeError if it is no text.
 */
export function boundedKey(key: string): string {
  if (typeof key !== 'string') throw new TypeError(`key: expected a text, got ${typeof key}`)
  if (key.length <= longest) return key
  // a mere slice would keep the whole string alive
  return Buffer.from(key.slice(0, longest), 'utf16le').toString('utf16le')
}
