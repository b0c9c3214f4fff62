const codes: ReadonlySet<unknown> = new Set([
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_STREAM_DESTROYED',
  'ECONNRESET',
  // body-parser's word for it
  'ECONNABORTED',
  'EPIPE',
])

/** Whether this is what streams and sockets say when a connection was cut off, by the client or by us. */
export function isBrokenConnection(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && codes.has(error.code)
}
