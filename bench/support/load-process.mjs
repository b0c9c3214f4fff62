// Asks a server over kept-alive connections, one request on each at a time, and says how long the answers took.
import { connect } from 'node:net'
import { serve } from './worker.mjs'

serve({ run })

async function run({
  port,
  requests,
  connections = 16,
  method = 'GET',
  path = '/',
  headers = {},
  body = '',
}) {
  const lines = Object.entries({ host: `127.0.0.1:${port}`, ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  )
  if (body !== '') lines.push(`content-length: ${Buffer.byteLength(body)}`)
  const message = Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
  const took = new Float64Array(requests)
  let begun = 0
  let answered = 0
  const startedAt = performance.now()
  const all = Array.from({ length: connections }, () => {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      let sentAt = 0
      const answer = new AnswerReader()
      const next = () => {
        if (begun === requests) {
          socket.destroy()
          return resolve()
        }
        begun += 1
        sentAt = performance.now()
        socket.write(message)
      }
      socket.on('connect', next)
      socket.on('error', reject)
      socket.on('close', () => reject(new Error('the server closed a connection')))
      socket.on('data', (chunk) => {
        if (!answer.read(chunk)) return
        if (answer.status !== 200) return reject(new Error(`answered ${answer.status}`))
        took[answered] = performance.now() - sentAt
        answered += 1
        next()
      })
    })
  })
  // a sleeping client would have to be woken by the server, at several microseconds of its CPU, the more the slower it is
  let isRunning = true
  const stayAwake = () => void (isRunning && setImmediate(stayAwake))
  stayAwake()
  await Promise.all(all).finally(() => (isRunning = false))
  const seconds = (performance.now() - startedAt) / 1_000
  took.sort()
  return {
    perSecond: requests / seconds,
    p50: took[Math.floor(requests / 2)],
    p99: took[Math.floor(requests * 0.99)],
  }
}

/** Finds the end of one answer at a time. */
class AnswerReader {
  status = 0
  #text = ''
  #end = -1
  #isChunked = false

  /** Whether the answer is whole with this chunk. */
  read(chunk) {
    this.#text += chunk.latin1Slice()
    if (this.#end < 0 && !this.#isChunked) this.#readHead()
    const isWhole = this.#isChunked
      ? this.#text.endsWith('0\r\n\r\n')
      : this.#end >= 0 && this.#text.length >= this.#end
    if (!isWhole) return false
    this.#text = ''
    this.#end = -1
    this.#isChunked = false
    return true
  }

  #readHead() {
    const end = this.#text.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#text.slice(0, end).toLowerCase()
    this.status = Number(head.slice(9, 12))
    const length = head.indexOf('content-length:')
    if (length >= 0) this.#end = end + 4 + Number.parseInt(head.slice(length + 15), 10)
    else if (head.includes('transfer-encoding: chunked')) this.#isChunked = true
    else this.#end = end + 4
  }
}
