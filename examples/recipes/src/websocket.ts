import { fetch } from '@timebudget/clients/fetch'
import { ClientClosedError, Deadline, findTimeBudgetError, operation } from '@timebudget/core'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'

interface Message {
  readonly id: string
  readonly question: string
  /** What is left of the sender's time, in milliseconds. */
  readonly timeout: number
}

export const server: WebSocketServer = new WebSocketServer({ port: Number(process.env['PORT'] ?? 3000) })

server.on('connection', (socket) => {
  // has no end of its own; ends all that is done for its messages when it closes
  const connection = Deadline.after(Infinity)
  socket.on('close', () => connection.cancel(new ClientClosedError('the WebSocket has been closed')))
  socket.on('error', () => socket.terminate())
  socket.on('message', (data) => void answer(socket, connection, data))
})

async function answer(socket: WebSocket, connection: Deadline, data: RawData): Promise<void> {
  const message = read(data)
  if (message === undefined) return socket.send(JSON.stringify({ error: 'BAD_MESSAGE' }))
  const { id, question, timeout } = message
  using deadline = Deadline.after(timeout, { parent: connection })
  try {
    socket.send(JSON.stringify({ id, answer: await operation('answer', { deadline }, () => ask(question)) }))
  } catch (error) {
    socket.send(JSON.stringify({ id, error: findTimeBudgetError(error)?.code ?? 'INTERNAL' }), () => {})
  }
}

async function ask(question: string): Promise<string> {
  const found = await fetch(`${process.env['INDEX_URL']}/search?q=${encodeURIComponent(question)}`)
  return found.text()
}

/** What a stranger has sent, at most a minute of time granted; `undefined` if it is no message. */
function read(data: RawData): Message | undefined {
  try {
    const { id, question, timeout = 5_000 } = Object(JSON.parse(Buffer.isBuffer(data) ? data.toString() : ''))
    if (typeof id !== 'string' || typeof question !== 'string') return undefined
    if (!Number.isSafeInteger(timeout) || timeout < 1) return undefined
    return { id, question, timeout: Math.min(timeout, 60_000) }
  } catch {
    return undefined
  }
}
