// Opens many connections, asks once on each, and reads whatever comes.
import { connect } from 'node:net'
import { serve } from './worker.mjs'

serve({ open })

function open({ port, count, path = '/' }) {
  for (let index = 0; index < count; index += 1) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`)
    socket.resume()
  }
}
