import { afterAll, expect, test } from 'vitest'
import { FaultyChain } from './faulty-chain.ts'
import { hopContract } from './hop-contract.ts'
import { Namespaces } from './namespaces.ts'

let network: Namespaces | undefined
afterAll(() => network?.[Symbol.dispose]())

hopContract({
  name: 'unplugged from the network',
  isHeard: false,
  async start(context) {
    network?.[Symbol.dispose]()
    network = await Namespaces.inARow(context, 3)
    return FaultyChain.start(network)
  },
  strike: (_chain, position) => network?.wire(position, 'down'),
  undo: (_chain, position) => network?.wire(position, 'up'),
})

test('a hop that crashed and came back while nobody could hear of it costs one request for each connection kept', async (context) => {
  using row = await Namespaces.inARow(context, 3)
  await using chain = await FaultyChain.start(row)
  const { host, port } = chain.addressOf(0)
  const ask = async (): Promise<number> =>
    (await fetch(`http://${host}:${port}/quick`, { headers: { 'X-Request-Timeout-Ms': '10000' } })).status
  expect(await ask()).toBe(200)
  row.wire(2, 'down')
  await chain.hop(2).kill()
  await chain.restart(2)
  row.wire(2, 'up')
  expect([200, 502]).toContain(await ask())
  for (let time = 0; time < 3; time += 1) expect(await ask()).toBe(200)
  expect(chain.hop(1).running).toBe(0)
})
