import { once } from 'node:events'
import type { Server } from 'node:net'

/** Where a recipe's server listens. */
export async function portOf(server: Pick<Server, 'address'> & NodeJS.EventEmitter): Promise<number> {
  if (server.address() === null) await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('it listens on no port')
  return address.port
}
