import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, Socket } from 'node:net'

/** A network between two hops: while it is cut, nothing passes, not even the news that somebody hung up. */
export class Link {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** How many connections its near side has hung up. */
  hungUp = 0
  #held: Array<() => void> | undefined

  private constructor(target: number) {
    this.#server = createServer({ allowHalfOpen: true }, (near) => {
      const far = new Socket({ allowHalfOpen: true })
      let isOpen = true
      const hangUp = (): void => {
        if (isOpen) this.hungUp += 1
        isOpen = false
      }
      near.on('end', hangUp).on('close', hangUp)
      this.#pass(() => far.connect(target, '127.0.0.1'))
      this.#forward(near, far)
      this.#forward(far, near)
    })
  }

  static async to(target: number): Promise<Link> {
    const link = new Link(target)
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
