import { deadlineInterceptor } from '@timebudget/clients/grpc'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { breaker, retry, retryEndOf } from '@timebudget/resilience'
import {
  credentials,
  makeGenericClientConstructor,
  Metadata,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  status,
} from '@grpc/grpc-js'
import { expect, onTestFinished, test } from 'vitest'

const serialize = (text: string): Buffer => Buffer.from(text)
const deserialize = (bytes: Buffer): string => bytes.toString()

const service = {
  search: {
    path: '/test.Index/Search',
    requestStream: false,
    responseStream: false,
    requestSerialize: serialize,
    requestDeserialize: deserialize,
    responseSerialize: serialize,
    responseDeserialize: deserialize,
  },
} as const

interface Index {
  readonly attempts: readonly (string | undefined)[]
  search(): Promise<string>
}

/** A gRPC server that fails with `code` so many times, and a client of it. */
async function index(
  failures: number,
  { code, pushback }: { code: status; pushback?: string },
): Promise<Index> {
  const attempts: (string | undefined)[] = []
  const server = new Server()
  server.addService(service, {
    search(call: ServerUnaryCall<string, string>, answer: sendUnaryData<string>) {
      attempts.push(call.metadata.get('x-request-attempt')[0]?.toString())
      if (attempts.length > failures) return answer(null, 'here')
      const metadata = new Metadata()
      if (pushback !== undefined) metadata.set('grpc-retry-pushback-ms', pushback)
      answer({ code, details: 'not now', metadata })
    },
  })
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    )
  })
  const Client = makeGenericClientConstructor(service, 'Index')
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    interceptors: [deadlineInterceptor()],
  })
  onTestFinished(() => {
    client.close()
    server.forceShutdown()
  })
  const search = (): Promise<string> =>
    new Promise((resolve, reject) => {
      client['search']?.('tea', (error: Error | null, value: string) =>
        error === null ? resolve(value) : reject(error),
      )
    })
  return { attempts, search }
}

const under = <T>(work: () => Promise<T>): Promise<T> => runWithDeadline(Deadline.after('10s'), work)
const quick = { backoff: { initial: 5 }, budget: null }

test('a gRPC service that is unavailable is asked again, and told which attempt it is', async () => {
  const { attempts, search } = await index(2, { code: status.UNAVAILABLE })
  expect(await under(() => retry(search, quick))).toBe('here')
  expect(attempts).toEqual([undefined, '2', '3'])
})

test('a gRPC server that pushes back is asked no earlier than it says, or not at all', async () => {
  const { attempts, search } = await index(1, { code: status.RESOURCE_EXHAUSTED, pushback: '150' })
  const begun = performance.now()
  expect(await under(() => retry(search, quick))).toBe('here')
  expect(performance.now() - begun).toBeGreaterThanOrEqual(150)
  expect(attempts).toHaveLength(2)

  const never = await index(9, { code: status.UNAVAILABLE, pushback: '-1' })
  const failed: unknown = await under(() => retry(never.search, quick)).catch((error: unknown) => error)
  expect(retryEndOf(failed)).toEqual({ stop: 'not_retryable', attempts: 1 })
  expect(never.attempts).toHaveLength(1)
})

test.each([status.INVALID_ARGUMENT, status.NOT_FOUND, status.ABORTED, status.INTERNAL])(
  'gRPC status %i is final',
  async (code) => {
    const { attempts, search } = await index(9, { code })
    await expect(under(() => retry(search, quick))).rejects.toMatchObject({ code })
    expect(attempts).toHaveLength(1)
  },
)

test('what a gRPC service fails with opens a breaker, what it says of its caller does not', async () => {
  const broken = await index(9, { code: status.UNAVAILABLE })
  const picky = await index(9, { code: status.INVALID_ARGUMENT })
  for (const [{ search }, state] of [
    [broken, 'open'],
    [picky, 'closed'],
  ] as const) {
    const around = breaker('index', { failures: 1 })
    await under(() => around.run(search)).catch(() => undefined)
    expect(around.state).toBe(state)
  }
})
