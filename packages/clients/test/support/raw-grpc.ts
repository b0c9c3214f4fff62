import { once } from 'node:events'
import { connect } from 'node:http2'

export interface RawAnswer {
  readonly status: number | undefined
  readonly outcome: string | undefined
  readonly serverTiming: string | undefined
}

/** Makes a unary call with headers that no client library would send. */
export async function rawCall(
  address: string,
  headers: Record<string, string>,
  path = '/bench.Texts/Ask',
): Promise<RawAnswer> {
  const session = connect(`http://${address}`)
  try {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    })
    // one message of one byte, not compressed
    stream.end(Buffer.from([0, 0, 0, 0, 1, 63]))
    stream.resume()
    let said: Record<string, unknown> = {}
    stream.on('response', (received) => (said = { ...said, ...received }))
    stream.on('trailers', (received) => (said = { ...said, ...received }))
    await once(stream, 'close')
    const text = (name: string): string | undefined => said[name]?.toString()
    const status = text('grpc-status')
    return {
      status: status === undefined ? undefined : Number(status),
      outcome: text('x-deadline-outcome'),
      serverTiming: text('server-timing'),
    }
  } finally {
    session.destroy()
  }
}
