/** The example whose code a block shows: its path, as the block's first line, a comment, says it. */
export function exampleShownBy(code: string): string | undefined {
  return /^\/\/ (examples\/\S+)\n/.exec(code)?.[1]
}
