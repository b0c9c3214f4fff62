// Opens many connections, asks once on each, and reads whatever comes.
import { once } from 'node:events'
import { connect } from 'node:net'
import { serve } from './worker.mjs'

serve({ open })

/** More at a time than a server accepts in one go can be refused, and whoever waits for all of them waits for ever. */
const atOnce = 100

async function open({ port, count, path = '/' }) {
  for (let opened = 0; opened < count; opened += atOnce) {
    await Promise.all(Array.from({ length: Math.min(atOnce, count - opened) }, () => openOne(port, path)))
  }
}

async function openOne(port, path) {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`)
  socket.resume()
}
