import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe } from 'vitest'
import { keepsItsDeadline } from './http-recipe.ts'
import { prepareEnvironment } from './in-this-process.ts'

describe('Hono on Node', () => {
  keepsItsDeadline(async (indexUrl) => {
    const faults = prepareEnvironment(indexUrl)
    const { server } = await import('../src/hono.ts')
    if (!server.listening) await once(server, 'listening')
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      faults,
      async close() {
        server.close()
        server.closeAllConnections()
      },
    }
  })
})
