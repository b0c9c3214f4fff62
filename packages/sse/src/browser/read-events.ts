import { createParser, type EventSourceMessage } from 'eventsource-parser'

/** More than any event should have, in characters: what never ends is not to fill the page's memory. */
const longestEvent = 16_000_000

/** How an event stream is read. */
export interface EventReader {
  /** Anything has come, be it a comment or half an event. */
  onBytes(): void
  /** Returns whether to go on. */
  onEvent(event: EventSourceMessage): boolean
}

/**
 * Reads events until the reader has enough or the body ends; what is left of it is given up.
 * @throws what the body breaks with, or Error for an event that does not end.
 */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  { onBytes, onEvent }: EventReader,
): Promise<void> {
  let goesOn = true
  const parser = createParser({
    maxBufferSize: longestEvent,
    onEvent(event) {
      goesOn &&= onEvent(event)
    },
  })
  const decoder = new TextDecoder()
  const normalize = lineFeeds()
  const reader = body.getReader()
  try {
    while (goesOn) {
      const { done, value } = await reader.read()
      if (done) return
      onBytes()
      parser.feed(normalize(decoder.decode(value, { stream: true })))
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** The parser holds a CR back until it knows what follows: with line feeds alone, an event is there when it is complete. */
function lineFeeds(): (text: string) => string {
  let endedWithReturn = false
  return function normalize(text) {
    // half a character is no text yet
    if (text === '') return text
    const rest = endedWithReturn ? text.replace(/^\n/, '') : text
    endedWithReturn = text.endsWith('\r')
    return rest.replace(/\r\n?/g, '\n')
  }
}
