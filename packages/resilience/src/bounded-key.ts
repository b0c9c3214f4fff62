const longest = 256

/** The first 256 characters of a key that may be a stranger's, so that however long it is, it takes no more memory. */
export function boundedKey(key: string): string {
  if (key.length <= longest) return key
  // a mere slice would keep the whole string alive
  return Buffer.from(key.slice(0, longest), 'utf16le').toString('utf16le')
}
