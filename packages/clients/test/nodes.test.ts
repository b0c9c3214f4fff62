import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { nodeMatrix } from '../../../test/support/node-matrix.ts'
import { requireOrSkip } from '../../../test/support/requirements.ts'
import { pgBench } from './support/pg-bench.ts'
import { redisServer } from '../../../test/support/redis-server.ts'

interface Told {
  readonly after: number
  readonly closedAfter: number
}

/** gRPC's and Connect's number for it. */
const deadlineExceeded = 4
const ours = { name: 'DeadlineExceededError', code: 'DEADLINE_EXCEEDED' }
const oursAsCause = { name: 'RequestError', code: 'DEADLINE_EXCEEDED' }
const exceeded = { ours: 'DEADLINE_EXCEEDED', outcome: 'deadline_exceeded' }

const everywhere = {
  fetch: ours,
  "undici's fetch, wrapped": ours,
  undici: ours,
  'node:http': ours,
  axios: ours,
  'axios by fetch': ours,
  got: ours,
  'got.stream': oursAsCause,
  ky: ours,
  'grpc-js': { name: 'Error', code: deadlineExceeded },
  Connect: { name: 'ConnectError', code: deadlineExceeded },
}
// they load on Node 22 and later alone
const from22 = { 'got 15': ours, 'got.stream 15': oursAsCause, 'ky 2': ours }

test.for(nodeMatrix())(
  'on Node $version a server that never answers costs each client its budget, and the connection closes',
  async ({ path, version }, context) => {
    const node = requireOrSkip(context, path, 'node scripts/install-node-matrix.mjs')
    const told = (await run(node, 'silent-server.mjs')) as Record<string, Told>
    const expected = Number.parseInt(version, 10) < 22 ? everywhere : { ...everywhere, ...from22 }
    expect(told).toMatchObject(
      Object.fromEntries(
        Object.entries(expected).map(([client, error]) => [client, { ...error, ...exceeded, closed: true }]),
      ),
    )
    expect(Object.keys(told)).toEqual(Object.keys(expected))
    for (const { after, closedAfter } of Object.values(told)) {
      expectInTime(after)
      // 12 on a machine with nothing else to do
      expect(closedAfter).toBeLessThan(500)
    }
  },
)

interface ToldOfStores extends Record<string, unknown> {
  readonly pg: { readonly after: number; readonly leftRunning: number }
  readonly 'node-redis': { readonly after: number }
  readonly ioredis: { readonly after: number }
  readonly "BullMQ's add": { readonly after: number }
}

test.for(nodeMatrix())(
  'on Node $version a query that sleeps and a frozen Redis cost a store its budget, and an expired job never runs',
  async ({ path }, context) => {
    const node = requireOrSkip(context, path, 'node scripts/install-node-matrix.mjs')
    const ports = [(await pgBench(context)).server.port, (await redisServer(context)).port]
    const told = (await run(node, 'silent-stores.mjs', ports)) as ToldOfStores
    expect(told).toMatchObject({
      pg: { ...ours, ...exceeded, isUsable: true },
      'node-redis': { ...ours, ...exceeded, isUsable: true },
      ioredis: { ...ours, ...exceeded, isUsable: true },
      "BullMQ's add": { ...ours, ...exceeded },
      "BullMQ's worker": { name: 'UnrecoverableError', ours: 'DEADLINE_EXCEEDED', attempts: 1, runs: 0 },
    })
    for (const client of ['pg', 'node-redis', 'ioredis', "BullMQ's add"] as const)
      expectInTime(told[client].after)
    expect(told.pg.leftRunning).toBeLessThan(500)
  },
)

/** A little above the 200 ms of the deadline. */
function expectInTime(after: number): void {
  expect(after).toBeGreaterThanOrEqual(200)
  // 220 on a machine with nothing else to do
  expect(after).toBeLessThan(1_000)
}

/** What a program of the support folder tells, on that Node. */
async function run(node: string, program: string, args: readonly number[] = []): Promise<unknown> {
  const path = fileURLToPath(new URL(`support/${program}`, import.meta.url))
  const { stdout, stderr } = await promisify(execFile)(node, [path, ...args.map(String)], { timeout: 18_000 })
  expect(stderr).toBe('')
  return JSON.parse(stdout)
}
