import { expect, test } from 'vitest'
import { findTimeBudgetError, isTimeBudgetError } from '@timebudget/core'
import { causesOf, codesOf, failureOf, onlyEntry, underDeadline } from '../support/calls.ts'
import { deadUrl, serveHttps, serveRaw, type TestServer } from '../support/servers.ts'
import type { ClientUnderTest } from './client-under-test.ts'

interface Fault {
  readonly fault: string
  /** What the library's own error is known by. */
  readonly codes: readonly string[]
  readonly start: () => Promise<Pick<TestServer, 'url'> & AsyncDisposable>
}

const nothing: AsyncDisposable = { [Symbol.asyncDispose]: () => Promise.resolve() }

const faults: readonly Fault[] = [
  {
    fault: 'a refused connection',
    codes: ['ECONNREFUSED'],
    start: async () => ({ url: await deadUrl(), ...nothing }),
  },
  {
    fault: 'a name that is not known',
    codes: ['ENOTFOUND', 'EAI_AGAIN'],
    start: () => Promise.resolve({ url: 'http://nobody.invalid/', ...nothing }),
  },
  {
    fault: 'a connection reset before the headers',
    codes: ['ECONNRESET', 'UND_ERR_SOCKET'],
    start: () => serveRaw((socket) => socket.resetAndDestroy()),
  },
  {
    fault: 'a connection closed before the headers',
    codes: ['ECONNRESET', 'UND_ERR_SOCKET'],
    start: () => serveRaw((socket) => socket.end()),
  },
  {
    fault: 'a connection reset in the body',
    codes: ['ECONNRESET', 'UND_ERR_SOCKET'],
    start: () =>
      serveRaw((socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegun ')
        setTimeout(() => socket.resetAndDestroy(), 30)
      }),
  },
  {
    fault: 'a body shorter than announced',
    codes: ['ECONNRESET', 'UND_ERR_SOCKET', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'],
    start: () =>
      serveRaw((socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegun ')
        setTimeout(() => socket.end(), 30)
      }),
  },
  {
    fault: 'an answer that is no HTTP',
    codes: ['HPE_INVALID_CONSTANT', 'HTTPParserError'],
    start: () => serveRaw((socket) => socket.write('SSH-2.0-OpenSSH_9.2\r\n\r\n')),
  },
  {
    fault: 'a certificate that nobody vouches for',
    codes: ['DEPTH_ZERO_SELF_SIGNED_CERT'],
    start: () => serveHttps((_request, response) => response.end('secret')),
  },
]

function namesOf(error: unknown): unknown[] {
  return causesOf(error).map((cause) => (cause instanceof Error ? cause.name : cause))
}

/** What an upstream's own faults look like. */
export function failuresContract(client: ClientUnderTest): void {
  test.each(faults)(
    "after $fault the library's error is the cause, and the outcome the upstream's",
    async ({ codes, start }) => {
      await using server = await start()
      await using governed = client.govern({})
      await underDeadline(5_000, async (deadline) => {
        const failure = await failureOf(governed.call(server.url).then((answer) => answer.text()))
        expect(codesOf(failure)).toContain('UPSTREAM_ERROR')
        // the HTTP parser does not give every error of its own a code
        const found = [...codesOf(failure), ...namesOf(failure)].map(String)
        expect(found).toEqual(
          expect.arrayContaining([expect.toSatisfy((code) => codes.includes(String(code)))]),
        )
        expect(findTimeBudgetError(failure)).toMatchObject({ operation: client.operation, status: 502 })
        expect(findTimeBudgetError(failure)?.message).toContain(`${client.operation} failed: `)
        expect(onlyEntry(deadline).outcome).toBe('upstream_error')
        expect(deadline.reason).toBeUndefined()
      })
    },
  )

  test.each(faults)('without a deadline $fault is just what the library says', async ({ start }) => {
    await using server = await start()
    await using governed = client.govern({})
    const failure = await failureOf(governed.call(server.url).then((answer) => answer.text()))
    const expected = await failureOf(client.bare(server.url).then((answer) => answer.text()))
    expect(causesOf(failure).some(isTimeBudgetError)).toBe(false)
    expect(namesOf(failure)).toEqual(namesOf(expected))
    expect(codesOf(failure)).toEqual(codesOf(expected))
  })

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
