const mostKept = 65_536

/** Counts the events of a `text/event-stream`, and keeps what its `error` event says; takes bounded memory, never throws. */
export class EventScanner {
  readonly #onEvent: () => void
  readonly #decoder = new TextDecoder()
  #line = ''
  #name = ''
  #data = ''
  #hasData = false
  #endedInReturn = false
  #count = 0
  #error: string | undefined

  /** `onEvent` is called for each event that has data. */
  constructor(onEvent: () => void = () => {}) {
    this.#onEvent = onEvent
  }

  get count(): number {
    return this.#count
  }

  /** Data of the first event named `error`. */
  get error(): string | undefined {
    return this.#error
  }

  add(chunk: Uint8Array): void {
    let text = this.#decoder.decode(chunk, { stream: true })
    if (text === '') return
    if (this.#endedInReturn && text.startsWith('\n')) text = text.slice(1)
    this.#endedInReturn = text.endsWith('\r')
    const lines = text.split(/\r\n|\r|\n/)
    const last = lines.pop() ?? ''
    for (const line of lines) {
      this.#read(this.#line + line)
      this.#line = ''
    }
    // of a line that never ends only the beginning is of interest
    if (this.#line.length < mostKept) this.#line += last.slice(0, mostKept)
  }

  #read(line: string): void {
    if (line === '') {
      this.#dispatch()
      return
    }
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'event') this.#name = value
    if (field !== 'data') return
    this.#hasData = true
    if (this.#data.length < mostKept) this.#data += value.slice(0, mostKept)
  }

  #dispatch(): void {
    if (this.#hasData) {
      this.#count += 1
      if (this.#name === 'error') this.#error ??= this.#data
      this.#onEvent()
    }
    this.#name = ''
    this.#data = ''
    this.#hasData = false
  }
}
