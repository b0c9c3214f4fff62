import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { nodeMatrix } from '../support/node-matrix.ts'
import { requireOrSkip } from '../support/requirements.ts'

interface Run {
  readonly code: number
  readonly printed: unknown
  readonly stderr: string
  readonly took: number
}

/** Runs a program of this folder against the built packages; killed, and so failed, after a quarter of a minute. */
function run(node: string, program: string): Promise<Run> {
  const path = fileURLToPath(new URL(program, import.meta.url))
  const started = performance.now()
  return new Promise((resolve) => {
    execFile(node, ['--expose-gc', path], { timeout: 15_000 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
      const printed: unknown = stdout === '' ? undefined : JSON.parse(stdout)
      resolve({ code, printed, stderr, took: performance.now() - started })
    })
  })
}

describe.each(nodeMatrix())('Node $version', ({ path }) => {
  async function programOf(context: { skip(note: string): never }, program: string): Promise<Run> {
    const node = requireOrSkip(context, path, 'node scripts/install-node-matrix.mjs')
    const ended = await run(node, program)
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    return ended
  }

  test('law 14: 50 calls known only by their signals all abort, under garbage collection', async (context) => {
    const { printed } = await programOf(context, 'abort-after-gc.mjs')
    expect(printed).toMatchObject({ aborted: 50 })
    const { earliest, latest } = printed as { earliest: number; latest: number }
    expect(earliest).toBeGreaterThanOrEqual(200)
    // a lost one is given up at 5 s; that they come at once is another test's, since collecting takes both cores here
    expect(latest).toBeLessThan(2_000)
  })

  test('law 14: signals abort although all they were derived from has been collected', async (context) => {
    const { printed } = await programOf(context, 'dropped-owners.mjs')
    const heard = printed as Record<string, boolean>
    expect(Object.keys(heard)).toHaveLength(7)
    for (const [name, isHeard] of Object.entries(heard)) expect([name, isHeard]).toEqual([name, true])
  })

  test('law 4: 50,000 deadlines of an hour leave no timer, no listener and no memory', async (context) => {
    const { printed } = await programOf(context, 'flat.mjs')
    expect(printed).toMatchObject({ timers: 0, listeners: 0 })
    // of the 1,000 bytes and more that one takes while it lives
    expect((printed as { bytesEach: number }).bytesEach).toBeLessThan(40)
  })

  test('a process lives to see its pending operation time out', async (context) => {
    const { printed } = await programOf(context, 'stays-alive.mjs')
    expect(printed).toMatchObject({ code: 'OPERATION_TIMEOUT' })
    expect((printed as { after: number }).after).toBeGreaterThanOrEqual(300)
  })

  test('a process is kept by no deadline, and by no operation that is over', async (context) => {
    const { printed, took } = await programOf(context, 'leaves.mjs')
    expect(printed).toEqual({ left: true })
    expect(took).toBeLessThan(10_000)
  })

  test('two built copies of core share a deadline and its reason', async (context) => {
    const { printed } = await programOf(context, 'two-copies.mjs')
    expect(printed).toEqual({ areTwo: true, isSameReason: true, isRecognised: 'deadline_exceeded' })
  })
})
