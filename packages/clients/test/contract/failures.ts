import { expect, test } from 'vitest'
import { expectLibrarysError } from '../every-client/fault-lines.ts'
import { codesOf, failureOf, onlyEntry, underDeadline } from '../support/calls.ts'
import { serveRaw, type TestServer } from '../support/servers.ts'
import type { ClientUnderTest } from './client-under-test.ts'
import { anyHttpClient, faulty, httpBench } from './http-bench.ts'

interface Fault {
  readonly fault: string
  /** What the library's own error is known by. */
  readonly knownBy: RegExp
  readonly start: () => Promise<TestServer>
}

const faults: readonly Fault[] = [
  {
    fault: 'a body shorter than announced',
    knownBy: /ECONNRESET|UND_ERR_SOCKET|UND_ERR_RES_CONTENT_LENGTH_MISMATCH/,
    start: () =>
      serveRaw((socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegun ')
        setTimeout(() => socket.end(), 30)
      }),
  },
  {
    fault: 'an answer that is no HTTP',
    // the HTTP parser does not give every error of its own a code
    knownBy: /HPE_INVALID_CONSTANT|HTTPParserError/,
    start: () => serveRaw((socket) => socket.write('SSH-2.0-OpenSSH_9.2\r\n\r\n')),
  },
]

/** What faults of an upstream's HTTP look like. */
export function failuresContract(client: ClientUnderTest): void {
  test.each(faults)(
    "after $fault the library's error is the cause, and the outcome the upstream's",
    ({ knownBy, start }) =>
      expectLibrarysError(anyHttpClient(client), knownBy, async () =>
        httpBench(client, faulty(await start()), {}),
      ),
  )

  test('a failure right before the deadline is the deadline', async () => {
    await using server = await serveRaw((socket, head) => {
      const moment = Number(/x-request-deadline: (\d+)/i.exec(head)?.[1])
      setTimeout(() => socket.resetAndDestroy(), moment - Date.now() - 3)
    })
    await using governed = client.govern({})
    await underDeadline(150, async (deadline) => {
      const failure = await failureOf(governed.call(server.url))
      expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
      expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
    })
  })
}
