import { expect, test } from 'vitest'
import { call, connection } from './client.ts'
import { nodeHttp, nodeHttp2 } from './node-http.ts'

for (const host of [nodeHttp, nodeHttp2]) {
  test(`law 7: an answer given in the very moment of the deadline is answered once, over ${host.name}`, async () => {
    let fraction = 0
    const server = await host.listen({
      options: { default: '5ms' },
      handler({ response, deadline }) {
        // some answers a hair before the deadline, some in the midst of it, some after it
        fraction = (fraction + 0.0011) % 0.3
        const margin = fraction - 0.005
        while (deadline.budget - deadline.elapsed() > margin);
        response.end('an answer')
      },
    })
    const target = { port: server.port, protocol: host.protocol }
    const kept = connection(target)
    const statuses = new Set<number>()
    for (let round = 0; round < 300; round += 1) {
      const { status, body } = await call(target, { connection: kept })
      expect(body).toMatch(status === 200 ? /^an answer$/ : /DEADLINE_EXCEEDED/)
      statuses.add(status)
    }
    expect(statuses).toEqual(new Set([200, 504]))
    kept.close()
    await server.close()
  })
}
