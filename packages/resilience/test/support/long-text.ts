/** A text of 50 KiB that begins like this, and shares its memory with no other. */
export function longText(beginning: string): string {
  return Buffer.alloc(50 * 2 ** 10, beginning).toString('latin1')
}
