// Runs in a process of its own, on the Node and beside the undici that the test names, and prints what it saw as JSON.
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { currentDeadline, Deadline, runWithDeadline } from '@timebudget/core'
import { wrapFetch } from '@timebudget/clients/fetch'
import { instrumentUndici } from '@timebudget/clients/undici'
import { echoWebSocket } from './websocket.ts'

interface Undici {
  request(url: string): Promise<{ body: { text(): Promise<string> } }>
  fetch(url: string): Promise<Response>
  Agent: new () => object
  setGlobalDispatcher(agent: object): void
  getGlobalDispatcher(): { request(call: object): Promise<{ body: { text(): Promise<string> } }> }
}

const [beside = 'nothing', order = 'before'] = process.argv.slice(2)
const loaders: Readonly<Record<string, () => Promise<unknown>>> = {
  undici6: () => import('undici6'),
  undici: () => import('undici'),
  undici8: () => import('undici8'),
}
const loadUndici = async (): Promise<Undici | undefined> => (await loaders[beside]?.()) as Undici | undefined

const closings: Promise<unknown>[] = []
const server = createServer((request, response) => {
  closings.push(once(response, 'close'))
  if (request.url === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: hello\n\n')
    return
  }
  if (request.url === '/stalls') return void response.write('begun ')
  if (request.url === '/slow') return undefined
  return void response.end(JSON.stringify(timesSent(request)))
})
server.on('upgrade', (request: IncomingMessage, socket: Socket) =>
  echoWebSocket(socket, String(request.headers['sec-websocket-key'])),
)
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

/** How often each of our headers was sent. */
function timesSent({ rawHeaders }: IncomingMessage): number[] {
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase())
  return ['x-request-deadline', 'x-request-timeout-ms'].map(
    (wanted) => names.filter((name) => name === wanted).length,
  )
}

const seen: Record<string, unknown> = {}

/** Notes what the work comes to, or the codes of what it fails with, and how its operations ended. */
async function note(what: string, budget: number | undefined, work: () => Promise<unknown>): Promise<void> {
  const deadline = budget === undefined ? undefined : Deadline.after(budget)
  let result: unknown
  try {
    result = await (deadline === undefined ? work() : runWithDeadline(deadline, work))
  } catch (error) {
    const codes: unknown[] = []
    for (
      let link = error as (Error & { code?: unknown }) | undefined;
      link instanceof Error;
      link = link.cause as Error
    ) {
      codes.push(typeof link.code === 'string' ? link.code : link.name)
    }
    result = codes
  }
  await new Promise((resolve) => setTimeout(resolve, 10))
  seen[what] = [result, ...(deadline?.ledger.entries.map(({ outcome }) => outcome) ?? [])]
  deadline?.settle()
}

const read = async (path: string, init?: RequestInit): Promise<unknown> => {
  const body = await (await fetch(`${url}${path}`, init)).text()
  return JSON.parse(body) as unknown
}

let undici = order === 'before' ? await loadUndici() : undefined
const uninstrument = instrumentUndici()
undici ??= await loadUndici()

await note('fetch', 5_000, () => read('/'))
await note('fetch without a deadline', undefined, () => read('/'))
await note('a POST', 5_000, () => read('/', { method: 'POST', body: 'ping' }))
await note('a slow answer', 150, () => read('/slow'))
await note('a body that stalls', 150, () => read('/stalls'))
await Promise.all(closings)
await note('wrapFetch as well', 5_000, async () => (await wrapFetch()(`${url}/`)).json())
await note('an abort', 5_000, () => {
  const controller = new AbortController()
  setTimeout(() => controller.abort(), 50)
  return read('/slow', { signal: controller.signal })
})
if (undici !== undefined) {
  const { request, fetch: ownFetch, getGlobalDispatcher } = undici
  const call = { origin: url, path: '/', method: 'GET' }
  await note(
    "undici's request",
    5_000,
    async () => JSON.parse(await (await request(`${url}/`)).body.text()) as unknown,
  )
  await note("undici's fetch", 5_000, async () => (await ownFetch(`${url}/`)).json())
  await note("undici's slow request", 150, async () => (await request(`${url}/slow`)).body.text())
  await note("undici's slow fetch", 150, () => ownFetch(`${url}/slow`))
  await note(
    "the dispatcher's request",
    5_000,
    async () => JSON.parse(await (await getGlobalDispatcher().request(call)).body.text()) as unknown,
  )
}
for (const budget of [undefined, 300]) {
  await note(`a WebSocket with a budget of ${budget}`, budget, async () => {
    const socket = new WebSocket(url.replace('http', 'ws'))
    await once(socket, 'open')
    while (currentDeadline()?.expired === false) await new Promise((resolve) => setTimeout(resolve, 20))
    socket.send('hello')
    const [message] = (await once(socket, 'message')) as [{ data: string }]
    socket.close()
    return message.data
  })
}
await note('an EventSource', undefined, async () => {
  const source = new EventSource(`${url}/events`)
  const [message] = (await once(source, 'message')) as [{ data: string }]
  source.close()
  return message.data
})
if (undici !== undefined) {
  undici.setGlobalDispatcher(new undici.Agent())
  const { fetch: ownFetch } = undici
  await note('after another setGlobalDispatcher', 5_000, async () => (await ownFetch(`${url}/`)).json())
  instrumentUndici()()
}
uninstrument()
await note('uninstrumented', 5_000, () => read('/'))
console.log(JSON.stringify(seen))
process.exit(0)
