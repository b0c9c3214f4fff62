/** The text in lines of at most so many characters, broken between words, each after `indent`. */
export function wrapped(
  text: string,
  { columns, indent = '' }: { readonly columns: number; readonly indent?: string },
): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && indent.length + line.length + 1 + word.length > columns) {
      lines.push(indent + line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, indent + line].join('\n')
}
