import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { attachDeadline as attachToAxios } from '@timebudget/clients/axios'
import { fetch } from '@timebudget/clients/fetch'
import { deadlineHooks } from '@timebudget/clients/got'
import { attachDeadline as attachToKy } from '@timebudget/clients/ky'
import { get } from '@timebudget/clients/node-http'
import { withDeadline as withPgDeadline } from '@timebudget/clients/pg'
import { withDeadline as withRedisDeadline } from '@timebudget/clients/redis'
import { deadlineInterceptor } from '@timebudget/clients/undici'
import { Deadline, deadlineSent, operationStarted, runWithDeadline } from '@timebudget/core'
import axios from 'axios'
import got from 'got'
import ky from 'ky'
import { Agent, request } from 'undici'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

/** What an observer has put around the operation that runs: its name. */
const around = new AsyncLocalStorage<string>()
const stops: Array<() => void> = []
let seen: Array<string | undefined> = []
let sent: boolean[] = []
let url = ''

const note = (): void => void seen.push(around.getStore())

beforeEach(async () => {
  seen = []
  sent = []
  stops.push(
    operationStarted.subscribe(({ entry, around: wrap }) => wrap((work) => around.run(entry.path, work))),
    deadlineSent.subscribe((told) => sent.push(told.sent)),
  )
  // what instrumentations hear of a request that is made
  for (const channel of ['undici:request:create', 'http.client.request.start']) {
    subscribe(channel, note)
    stops.push(() => unsubscribe(channel, note))
  }
  const server = createServer((_, response) => response.end('{}')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  stops.push(() => {
    server.closeAllConnections()
    server.close()
  })
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
})

afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

const calls: Record<string, () => Promise<unknown>> = {
  fetch: async () => (await fetch(url)).text(),
  undici: async () => {
    const dispatcher = new Agent().compose(deadlineInterceptor())
    await (await request(url, { dispatcher })).body.text()
  },
  http: async () => {
    const [response] = await once(get(url), 'response')
    response.resume()
    await once(response, 'end')
  },
  axios: async () => {
    const instance = axios.create()
    attachToAxios(instance)
    await instance.get(url)
  },
  'axios by fetch': async () => {
    const instance = axios.create({ adapter: 'fetch' })
    attachToAxios(instance, { operation: 'axios by fetch' })
    await instance.get(url)
  },
  got: () => got.extend(deadlineHooks()).get(url).text(),
  ky: () => attachToKy(ky).get(url).text(),
  redis: () => {
    const client = {
      sendCommand() {},
      get: async () => note(),
    }
    return withRedisDeadline(client).get()
  },
  pg: async () => {
    const pool = {
      totalCount: 0,
      query() {},
      connect(tell: (error: Error) => void) {
        note()
        tell(new Error('no connection'))
      },
    }
    await Promise.resolve(withPgDeadline(pool).query()).catch(() => {})
    await Promise.resolve(Reflect.apply(withPgDeadline(pool).query, pool, ['select 1'])).catch(() => {})
  },
}

describe('what observers put around an operation is around the call that it makes', () => {
  test.each(Object.keys(calls))('%s', async (name) => {
    const deadline = Deadline.after('10s')

    await runWithDeadline(deadline, calls[name] ?? (() => undefined))

    expect(seen).toEqual([name])
    deadline.settle()
  })

  test.each(['fetch', 'undici', 'http', 'axios', 'got', 'ky'])(
    '%s tells that it sent the deadline',
    async (name) => {
      const deadline = Deadline.after('10s')

      await runWithDeadline(deadline, calls[name] ?? (() => undefined))

      expect(sent).toEqual([true])
      deadline.settle()
    },
  )

  test('a host that gets no deadline is told of as well', async () => {
    const deadline = Deadline.after('10s')
    const instance = axios.create()
    attachToAxios(instance, { propagateTo: false })

    await runWithDeadline(deadline, () => instance.get(url))

    expect(sent).toEqual([false])
    deadline.settle()
  })
})
