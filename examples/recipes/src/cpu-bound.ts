import { createServer, type Server } from 'node:http'
import { withDeadline } from '@timebudget/core/server'
import { offload } from '@timebudget/resilience' // and: npm install piscina

const worker = new URL('./cpu-bound-worker.js', import.meta.url)

export const server: Server = createServer(
  withDeadline(
    async (request, response) => {
      const below = Number(new URL(request.url ?? '/', 'http://localhost').searchParams.get('below'))
      const count = await offload<number>(worker, below, { name: 'countPrimes', operation: 'primes' })
      response.end(String(count))
    },
    { default: '2s', max: '10s' },
  ),
)
server.listen(process.env['PORT'] ?? 3000)
