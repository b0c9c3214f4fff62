/** An event as it is handed to a stream. */
export interface OutgoingEvent {
  readonly event: string
  readonly data: unknown
  readonly id?: string | undefined
}

/** A comment: keeps a connection alive and is no event to anybody. */
export const comment = ':\n\n'

/** How long a client is to wait before it connects again, in milliseconds. */
export function retryFrame(milliseconds: number): string {
  return `retry: ${Math.ceil(milliseconds)}\n\n`
}

/**
 * An event on the wire. Its data is JSON, so it is one line whatever is in it.
 * @throws TypeError for a name or id that would break the line, and for data that is no JSON.
 */
export function encodeEvent({ event, data, id }: OutgoingEvent): string {
  const idLine = id === undefined ? '' : `id: ${oneLine(id, 'id')}\n`
  return `${idLine}event: ${oneLine(event, 'event')}\ndata: ${JSON.stringify(data) ?? 'null'}\n\n`
}

function oneLine(text: string, field: string): string {
  if (/^[^\r\n\0]+$/.test(text)) return text
  throw new TypeError(`${field}: expected one line of text, got ${JSON.stringify(text)}`)
}
