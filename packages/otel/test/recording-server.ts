import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** Headers as they were on the wire: every line, in order. */
export type HeaderLines = ReadonlyArray<readonly [name: string, value: string]>

/** A server that notes the header lines of each request by its path, and answers `answer` or 200. */
export interface RecordingServer extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** The values of a header in the only request to that path. */
  values(path: string, header: string): readonly string[]
  /** The same of all requests to that path, in their order. */
  attempts(path: string, header: string): ReadonlyArray<readonly string[]>
  readonly paths: readonly string[]
}

export async function recordingServer(
  answer: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => {
    response.end()
  },
): Promise<RecordingServer> {
  const requests: Array<{ readonly path: string; readonly lines: HeaderLines }> = []
  const server = createServer((request, response) => {
    const { rawHeaders, url = '' } = request
    const lines = rawHeaders.flatMap((name, index) =>
      index % 2 === 0 ? [[name.toLowerCase(), rawHeaders[index + 1] ?? ''] as const] : [],
    )
    requests.push({ path: url, lines })
    answer(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const attempts: RecordingServer['attempts'] = (path, header) =>
    requests
      .filter((request) => request.path === path)
      .map(({ lines }) => lines.filter(([name]) => name === header).map(([, value]) => value))
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    attempts,
    values(path, header) {
      const [values, ...more] = attempts(path, header)
      if (values === undefined || more.length > 0) throw new Error(`not one request to ${path}`)
      return values
    },
    get paths() {
      return requests.map(({ path }) => path)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
