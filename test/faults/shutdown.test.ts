import { Agent, request as startRequest } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { RawClient } from './raw-client.ts'
import { Service } from './service.ts'

vi.setConfig({ testTimeout: 60_000 })

const grace = 2_500

/** How one request of the load ended. */
interface End {
  readonly status: number | undefined
  readonly body: string
  readonly outcome: string | undefined
  /** Whether the server will not hear of this connection any more. */
  readonly isLast: boolean
  /** Why there was no answer. */
  readonly code: string | undefined
}

function ask(port: number, path: string, agent: Agent): Promise<End> {
  return new Promise((resolve) => {
    let body = ''
    let isLast = false
    const end = (status: number | undefined, outcome: string | undefined, code?: string): void =>
      resolve({ status, body, outcome, isLast, code })
    const request = startRequest({ port, path, agent, headers: { 'x-request-timeout-ms': '20000' } })
    request.on('response', (response) => {
      const outcome = response.headers['x-deadline-outcome'] as string | undefined
      isLast = response.headers.connection === 'close'
      response.on('data', (chunk) => (body += String(chunk)))
      response.on('end', () => end(response.statusCode, outcome))
      response.on('error', () => end(response.statusCode, outcome, 'CUT_OFF'))
    })
    request.on('error', (error: NodeJS.ErrnoException) => end(undefined, undefined, error.code))
    request.end()
  })
}

/** A client that asks again and again, over one connection as long as it may, until it is not let in any more. */
async function askOn(port: number): Promise<End[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ends: End[] = []
  for (;;) {
    const end = await ask(port, `/slow?for=${20 + Math.random() * 60}`, agent)
    ends.push(end)
    if (end.status === undefined) break
    if (end.status !== 200) await sleep(50)
  }
  agent.destroy()
  return ends
}

test.concurrent.each(['http', 'express', 'koa', 'fastify'] as const)(
  'a process that is told to stop under load loses nothing it has accepted, refuses the rest, and ends by itself: %s',
  async (framework) => {
    await using service = await Service.start({
      framework,
      grace,
      lameDuck: 1_500,
    })
    const { port } = service
    const own = new Agent()
    const long = ['/slow?for=1500', '/silent', '/events', '/half'].map((path) => ask(port, path, own))
    using idle = await RawClient.to({ port })
    for (const path of ['/silent', '/events', '/half']) await service.report('entered', { path })
    const load = Array.from({ length: 20 }, () => askOn(port))
    await service.report('finished', { outcome: 'ok' }, 40)

    service.process.kill('SIGTERM')
    const stopped = performance.now()
    await service.report('stopping')
    expect(await ask(port, '/quick', own)).toMatchObject({ status: 503, outcome: 'shutdown' })

    const asked = (await Promise.all(load)).flat()
    const ends = new Set(
      asked.map(({ status, outcome, body, code }) => code ?? outcome ?? `${status} ${body}`),
    )
    // those who were still to be accepted are reset
    ends.delete('ECONNRESET')
    expect([...ends].toSorted()).toEqual(['200 done', 'ECONNREFUSED', 'shutdown'])
    expect(asked.filter(({ outcome, isLast }) => outcome === 'shutdown' && !isLast)).toEqual([])

    const [slow, silent, events, half] = await Promise.all(long)
    expect(slow).toMatchObject({ status: 200, body: 'done' })
    expect(silent).toMatchObject({ status: 503, outcome: 'shutdown' })
    expect(events?.body).toMatch(/event: error\ndata: .*"code":"SHUTTING_DOWN".*\n\n$/)
    expect(half).toMatchObject({ status: 200, code: 'CUT_OFF' })

    expect(await Promise.race([service.ended, sleep(20_000, 'still there')])).toBe(0)
    expect(performance.now() - stopped).toBeLessThan(grace + 3_000)
    const answers = asked.filter(({ status }) => status !== undefined).length + long.length + 1
    expect(service.all('started')).toHaveLength(answers)
    expect(idle.isClosed).toBe(true)
    expect(service.running).toBe(0)
    expect(service.all('crashed')).toEqual([])
  },
)
