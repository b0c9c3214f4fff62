// What stands behind the last hop: it knows nothing of deadlines, and is quick, slow, silent, busy or dead as asked.
import { createServer } from 'node:http'

const afterwards = (response, delay, act) => {
  const timer = setTimeout(() => act(), delay)
  response.on('close', () => clearTimeout(timer))
}

const kinds = {
  quick: (response) => response.end('quick'),
  slow: (response, delay) => afterwards(response, delay, () => response.end('slow')),
  silent() {},
  reset: (response, delay) => afterwards(response, delay, () => response.socket?.resetAndDestroy()),
  dead: (response) => response.destroy(),
  busy: (response) => response.writeHead(503, { 'retry-after': '1' }).end('busy'),
  half(response, delay) {
    response.writeHead(200, { 'content-length': '100' }).write('half')
    afterwards(response, delay, () => response.destroy())
  },
  drip(response, delay) {
    const drip = setInterval(() => response.write('.'), 20)
    response.on('close', () => clearInterval(drip))
    afterwards(response, delay, () => response.end())
  },
}

/** Serves it; `open` counts the requests whose connection has not been let go. */
export async function startUpstream() {
  let open = 0
  let served = 0
  const server = createServer((request, response) => {
    open += 1
    served += 1
    response.on('close', () => (open -= 1))
    const [, kind, delay] = request.url.split('/')
    kinds[kind](response, Number(delay))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    get open() {
      return open
    },
    get served() {
      return served
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
