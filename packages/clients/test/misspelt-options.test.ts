import http from 'node:http'
import { attachDeadline as attachToAxios } from '@timebudget/clients/axios'
import { deadlineInterceptor as connectInterceptor } from '@timebudget/clients/connect'
import { wrapFetch } from '@timebudget/clients/fetch'
import { deadlineHooks } from '@timebudget/clients/got'
import { deadlineInterceptor as grpcInterceptor } from '@timebudget/clients/grpc'
import { attachDeadline as attachToKy } from '@timebudget/clients/ky'
import { DeadlineAgent, wrapRequest } from '@timebudget/clients/node-http'
import { withDeadline as withRedis } from '@timebudget/clients/redis'
import { deadlineInterceptor as undiciInterceptor } from '@timebudget/clients/undici'
import axios from 'axios'
import ky from 'ky'
import { expect, test } from 'vitest'

const misspelt: object = { timout: '1s' }

const clients: Readonly<Record<string, (options: object) => unknown>> = {
  axios: (options) => attachToAxios(axios.create(), options),
  Connect: (options) => connectInterceptor(options),
  fetch: (options) => wrapFetch(fetch, options),
  got: (options) => deadlineHooks(options),
  gRPC: (options) => grpcInterceptor(options),
  ky: (options) => attachToKy(ky, options),
  'node:http': (options) => wrapRequest(http.request, options),
  'a DeadlineAgent': (options) => new DeadlineAgent(options),
  Redis: (options) => withRedis({ sendCommand: () => undefined }, options),
  undici: (options) => undiciInterceptor(options),
}

test.each(Object.entries(clients))('%s refuses an option that does not exist, by name', (_name, make) => {
  expect(() => make(misspelt)).toThrow(
    new TypeError(
      'timout: no such option; there are timeout, floor, operation, requireDeadline, propagateTo, trust, emit',
    ),
  )
  expect(() => make({ timeout: '1s' })).not.toThrow()
})

test('a DeadlineAgent that is given an agent in place of options says so, and does not fall back on another', () => {
  expect(() => new DeadlineAgent(new http.Agent() as object)).toThrow(/: no such option; there are timeout/)
})
