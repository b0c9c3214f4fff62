import ky from 'ky'
import { Agent } from 'undici6'
import { attachDeadline } from '../src/ky.ts'
import type { Fetch } from '../src/fetch.ts'
import { clientContract } from './client-contract.ts'
import { kyCaller } from './support/ky-calls.ts'

clientContract({
  name: 'ky',
  operation: 'ky',
  isBounded: true,
  bare: kyCaller(ky),
  govern({ connections = 64, ...options }) {
    const dispatcher = new Agent({ connections })
    const fetch: Fetch = (input, init) => globalThis.fetch(input, Object.assign({ ...init }, { dispatcher }))
    return {
      call: kyCaller(attachDeadline(ky.extend({ fetch }), options)),
      [Symbol.asyncDispose]: () => dispatcher.destroy(),
    }
  },
})
