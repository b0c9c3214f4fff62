import { createServer } from 'node:http'
import { once } from 'node:events'
import { send } from './send.ts'
import { readTarget } from './target.ts'

/**
 * Sends a request to ourselves, so that what Node loads and compiles for its first one is not taken for the service's time.
 * Never rejects.
 */
export async function warmUp(): Promise<void> {
  const server = createServer((_request, response) => response.end())
  try {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') return
    // by name, since names are looked up as well
    await send(readTarget([`localhost:${address.port}`], {}), { stamps: () => ({}), patience: 1000 })
  } catch {
    // where nobody may listen the first request is a little slower
  } finally {
    server.close()
    server.closeAllConnections()
  }
}
