import type { Terminal } from '../../src/command.ts'

/** A terminal that keeps what is written to it. */
export class RecordingTerminal implements Terminal {
  printed = ''
  complained = ''

  print(text: string): void {
    this.printed += text
  }

  complain(text: string): void {
    this.complained += text
  }
}
