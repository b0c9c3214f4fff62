import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'

/** Answers a WebSocket's handshake and then each of its short texts with the same text. */
export function echoWebSocket(socket: Socket, key: string): void {
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
  )
  socket.on('data', (frame: Buffer) => {
    const [first = 0, second = 0] = frame
    if ((first & 15) !== 1) return socket.end()
    const length = second & 127
    const mask = frame.subarray(2, 6)
    const text = frame.subarray(6, 6 + length).map((byte, index) => byte ^ (mask[index % 4] ?? 0))
    return socket.write(Buffer.concat([Buffer.from([129, length]), text]))
  })
}
