import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { type Deadline, DeadlineExceededError, type RequestFinished, requestFinished } from '@timebudget/core'
import { deadlineOf, openRequest, resolveServerOptions, withDeadline } from '@timebudget/core/server'
import { begin, call } from './client.ts'
import { deferred } from './deferred.ts'
import { serve } from './host.ts'
import { asHttp2Listener, listenOn, nodeHttp } from './node-http.ts'
import { forever } from './waiting.ts'

describe('withDeadline()', () => {
  test('leaves upgraded connections alone', async () => {
    const server = createServer(withDeadline(forever, { default: 30 }))
    let seen: Deadline | undefined
    server.on('upgrade', (request, socket) => {
      seen = deadlineOf(request)
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
      socket.pipe(socket)
    })
    const { port, close } = await listenOn(server)
    const socket = connect(port, 'localhost')
    socket.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
    const [switched] = await once(socket, 'data')
    expect(String(switched)).toContain('101')
    await new Promise((resolve) => setTimeout(resolve, 80))
    socket.write('still here')
    expect(String((await once(socket, 'data'))[0])).toBe('still here')
    expect(seen).toBeUndefined()
    socket.destroy()
    await close()
  })

  test('leaves a request alone that was upgraded before it came here', () => {
    const request = { upgrade: true, headers: {}, socket: {} } as never
    expect(openRequest(request, {} as never, resolveServerOptions())).toBeUndefined()
  })

  test('holds an upgrade that the server does not take to the deadline', async () => {
    await using server = await serve(nodeHttp, { handler: forever, options: { default: 50 } })
    const headers = { connection: 'upgrade', upgrade: 'h2c' }
    expect(await call(server, { headers })).toMatchObject({ status: 504 })
  })

  test('takes a listener that returns nothing', async () => {
    const { port, close } = await listenOn(
      createServer(withDeadline((_request, response) => void response.end('done'))),
    )
    expect(await call({ port, protocol: 'http/1.1' })).toMatchObject({ status: 200, body: 'done' })
    await close()
  })

  test('a client that leaves ends each of the requests it has pipelined, once, and those alone that are still on', async () => {
    const arrived: ServerResponse[] = []
    const allArrived = deferred<void>()
    const ended: string[] = []
    const allEnded = deferred<void>()
    const unsubscribe = requestFinished.subscribe(({ outcome, request }) => {
      ended.push(`${(request as IncomingMessage).url} ${outcome}`)
      if (ended.length === 4) allEnded.resolve()
    })
    const listener = withDeadline(
      (request, response) => {
        // once all is read, nothing is emitted for a response that stands in line
        request.resume().once('end', () => {
          arrived.push(response)
          if (arrived.length === 4) allArrived.resolve()
        })
      },
      { default: '1m' },
    )
    const { port, close } = await listenOn(createServer(listener))
    const socket = connect(port, 'localhost')
    for (const path of ['/a', '/b', '/c', '/d']) socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`)
    await allArrived.promise
    arrived[0]?.end('answered')
    await once(socket, 'data')
    socket.destroy()
    await allEnded.promise
    unsubscribe()
    expect(ended.toSorted()).toEqual(['/a ok', '/b client_closed', '/c client_closed', '/d client_closed'])
    await close()
  })

  test('answers an error of ours that is thrown at once', async () => {
    const listener = withDeadline(() => {
      throw new DeadlineExceededError('too late')
    })
    const { port, close } = await listenOn(createServer(listener))
    expect(await call({ port, protocol: 'http/1.1' })).toMatchObject({ status: 504 })
    await close()
  })

  test('tells of a request that a route has tightened its time and its budget from its own beginning', async () => {
    const tight = withDeadline((_request, response) => void response.end('done'), { default: '10s' })
    const late = withDeadline(forever, { default: 20 })
    const listener = withDeadline(
      (request, response) => {
        setTimeout(() => (request.url === '/late' ? late : tight)(request, response), 60)
      },
      { default: '30s' },
    )
    const { port, close } = await listenOn(createServer(listener))
    const finished: RequestFinished[] = []
    const stop = requestFinished.subscribe((event) => finished.push(event))
    expect(await call({ port, protocol: 'http/1.1' })).toMatchObject({ status: 200 })
    expect(await call({ port, protocol: 'http/1.1' }, { path: '/late' })).toMatchObject({ status: 504 })
    stop()
    await close()
    const [inTime, tooLate] = finished
    expect(inTime).toMatchObject({ source: 'route', deadline: { budget: 10_000 }, overrun: 0 })
    expect(inTime?.elapsed).toBeGreaterThan(59)
    expect(inTime?.budget).toBeGreaterThan(10_059)
    // what it had is never more than what it arrived with, and an end at the deadline is none before it
    expect(tooLate).toMatchObject({ source: 'route', outcome: 'deadline_exceeded' })
    expect(tooLate?.budget).toBeGreaterThan(79)
    expect(tooLate?.overrun).toBeCloseTo((tooLate?.elapsed ?? 0) - (tooLate?.budget ?? 0), 6)
  })

  test('lets a process end soon after its server has closed, whatever budgets a client left behind', async () => {
    const program = `
      import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
      import { withDeadline } from '@timebudget/core/server'
      const server = createServer(withDeadline(({ url }) => {
        console.log('entered')
        return new Promise(() => {})
      }, { default: '1h', max: '1h' }))
      server.listen(0, () => console.log(server.address().port))
      process.stdin.once('data', () => server.close())
    `
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      cwd: import.meta.dirname,
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    child.stdout.setEncoding('utf8')
    const [port] = await once(child.stdout, 'data')
    const calling = begin({ port: Number(port), protocol: 'http/1.1' })
    await once(child.stdout, 'data')
    calling.leave()
    const exited = once(child, 'exit')
    child.stdin.end('close')
    const closedAt = performance.now()
    expect(await exited).toEqual([0, null])
    expect(performance.now() - closedAt).toBeLessThan(2_000)
  })
})

test.each(['http/1.1', 'h2'] as const)(
  'a request that gets its deadline only after its client has left is over at once, over %s',
  async (protocol) => {
    const entered = deferred()
    const finished = deferred<RequestFinished>()
    const stop = requestFinished.subscribe(finished.resolve)
    let isHandled = false
    const inner = withDeadline(() => {
      isHandled = true
    })
    const listener = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      entered.resolve()
      await once(response, 'close')
      await new Promise(setImmediate)
      inner(request, response)
    }
    const { port, close } = await listenOn(
      protocol === 'h2' ? createHttp2Server(asHttp2Listener(listener)) : createServer(listener),
    )
    const calling = begin({ port, protocol })
    await entered.promise
    calling.leave()
    expect(await finished.promise).toMatchObject({ outcome: 'client_closed', status: undefined })
    expect(isHandled).toBe(false)
    stop()
    await close()
  },
)
