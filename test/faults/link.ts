import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, Socket } from 'node:net'

/** A network between two hops: while it is cut, nothing passes, not even the news that somebody hung up. */
export class Link {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** How many connections each side has hung up. */
  readonly hungUp = { near: 0, far: 0 }
  #held: Array<() => void> | undefined

  private constructor(target: { readonly port: number; readonly host: string }) {
    this.#server = createServer({ allowHalfOpen: true }, (near) => {
      const far = new Socket({ allowHalfOpen: true })
      onceEnded(near, () => (this.hungUp.near += 1))
      onceEnded(far, () => (this.hungUp.far += 1))
      this.#pass(() => far.connect(target))
      this.#forward(near, far)
      this.#forward(far, near)
    })
  }

  static async to(port: number, host = '127.0.0.1'): Promise<Link> {
    const link = new Link({ port, host })
    link.#server.listen(0, '127.0.0.1')
    await once(link.#server, 'listening')
    return link
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  cut(): void {
    this.#held ??= []
  }

  /** Lets through what was held back, in its order. */
  heal(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const act of held) act()
  }

  #forward(from: Socket, to: Socket): void {
    this.#sockets.add(from)
    from.on('data', (chunk) => this.#pass(() => to.write(chunk)))
    from.on('end', () => this.#pass(() => to.end()))
    from.on('error', () => this.#pass(() => to.resetAndDestroy()))
    from.on('close', () => {
      this.#sockets.delete(from)
      this.#pass(() => to.destroySoon())
    })
  }

  #pass(act: () => void): void {
    if (this.#held === undefined) act()
    else this.#held.push(act)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    for (const socket of [...this.#sockets]) socket.destroy()
  }
}

function onceEnded(socket: Socket, tell: () => void): void {
  let isOpen = true
  const end = (): void => {
    if (isOpen) tell()
    isOpen = false
  }
  socket.on('end', end).on('close', end)
}
