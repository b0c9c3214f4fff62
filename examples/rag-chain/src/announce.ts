import type { AddressInfo, Server } from 'node:net'

/** Says where a service listens, to the process that started it or to the terminal; a started service ends with its starter. */
export function announce(name: string, server: Server): void {
  const { port } = server.address() as AddressInfo
  if (process.send === undefined) {
    console.log(`${name} listens on http://127.0.0.1:${port}`)
    return
  }
  process.send({ port })
  process.once('disconnect', () => process.exit())
  // Ctrl-C reaches the whole process group; the starter decides when we end.
  process.on('SIGINT', () => {})
}
