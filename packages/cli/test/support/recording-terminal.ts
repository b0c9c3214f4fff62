import type { Terminal } from '../../src/command.ts'
import type { Look } from '../../src/terminal/look.ts'

/** A terminal that keeps what is written to it. */
export class RecordingTerminal implements Terminal {
  readonly look: Look
  printed = ''
  complained = ''
  readonly stop: AbortController = new AbortController()

  constructor(look: Look = { columns: 80, colour: false, unicode: true }) {
    this.look = look
  }

  stopSignal(): AbortSignal {
    return this.stop.signal
  }

  print(text: string): void {
    this.printed += text
  }

  complain(text: string): void {
    this.complained += text
  }
}
