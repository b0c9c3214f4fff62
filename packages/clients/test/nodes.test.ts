import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { nodeMatrix } from '../../../test/support/node-matrix.ts'
import { requireOrSkip } from '../../../test/support/requirements.ts'

const program = fileURLToPath(new URL('support/silent-server.mjs', import.meta.url))

interface Told {
  readonly after: number
  readonly closedAfter: number
}

/** gRPC's and Connect's number for it. */
const deadlineExceeded = 4
const ours = { name: 'DeadlineExceededError', code: 'DEADLINE_EXCEEDED' }

const expected = {
  fetch: ours,
  "undici's fetch, wrapped": ours,
  undici: ours,
  'node:http': ours,
  axios: ours,
  'axios by fetch': ours,
  got: ours,
  'got.stream': { name: 'RequestError', code: 'DEADLINE_EXCEEDED' },
  ky: ours,
  'grpc-js': { name: 'Error', code: deadlineExceeded },
  Connect: { name: 'ConnectError', code: deadlineExceeded },
}

test.for(nodeMatrix())(
  'on Node $version a server that never answers costs each client its budget, and the connection closes',
  async ({ path }, context) => {
    const node = requireOrSkip(context, path, 'node scripts/install-node-matrix.mjs')
    const { stdout, stderr } = await promisify(execFile)(node, [program], { timeout: 18_000 })
    expect(stderr).toBe('')
    const told = JSON.parse(stdout) as Record<string, Told>
    const same = { ours: 'DEADLINE_EXCEEDED', outcome: 'deadline_exceeded', closed: true }
    expect(told).toMatchObject(
      Object.fromEntries(Object.entries(expected).map(([client, error]) => [client, { ...error, ...same }])),
    )
    expect(Object.keys(told)).toEqual(Object.keys(expected))
    for (const { after, closedAfter } of Object.values(told)) {
      expect(after).toBeGreaterThanOrEqual(200)
      // 220 and 12 on a machine with nothing else to do
      expect(after).toBeLessThan(1_000)
      expect(closedAfter).toBeLessThan(500)
    }
  },
)
