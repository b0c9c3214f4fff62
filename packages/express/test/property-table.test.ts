import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { keepAsTables } from '../src/property-table.ts'

setFlagsFromString('--allow-natives-syntax')
const isTable: (value: object) => boolean = runInNewContext('(value) => !%HasFastProperties(value)')

/** What becomes of a request and its response, with a prototype of their own, as Express gives them, or without. */
async function kept({ hasPrototype }: { readonly hasPrototype: boolean }): Promise<{
  tables: boolean[]
  before: unknown[]
  after: unknown[]
}> {
  type Kept = Awaited<ReturnType<typeof kept>>
  let tell: (result: Kept) => void = () => {}
  const seen = new Promise<Kept>((resolve) => (tell = resolve))
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    if (hasPrototype) {
      for (const each of [request, response])
        Object.setPrototypeOf(each, Object.create(Object.getPrototypeOf(each)))
    }
    const before = [Object.assign({}, request), Object.assign({}, response)]
    keepAsTables(request, response)
    tell({
      tables: [isTable(request), isTable(response)],
      before,
      after: [Object.assign({}, request), Object.assign({}, response)],
    })
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  get({ port, host: '127.0.0.1', agent: false }, (response) => response.resume())
  const result = await seen
  server.close()
  return result
}

test.skipIf(Number(process.versions.node.split('.')[0]) >= 24)(
  'a request with a prototype of Express’s is kept as a table up to Node 22, with all that it had',
  async () => {
    const { tables, before, after } = await kept({ hasPrototype: true })
    expect(tables).toEqual([true, true])
    expect(after).toEqual(before)
  },
)

test('a request with Node’s own prototype is left as it is', async () => {
  const { tables } = await kept({ hasPrototype: false })
  expect(tables).toEqual([false, false])
})
