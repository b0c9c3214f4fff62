import { Link } from './link.ts'
import { Service, type ServiceSettings } from './service.ts'

const frameworks = ['express', 'koa', 'fastify'] as const

/** Express -> Koa -> Fastify, each in a process of its own, of which one is struck by a fault. */
export class FaultyChain {
  /** Front to back. */
  readonly hops: Service[] = []
  /** The network in front of each hop, where there is one that can be cut. */
  readonly links: Link[] = []

  static async start({ isLinked }: { readonly isLinked: boolean }): Promise<FaultyChain> {
    const chain = new FaultyChain()
    for (const framework of frameworks.toReversed()) {
      const behind = chain.hops[0]
      const upstream = behind === undefined ? {} : { upstream: `http://127.0.0.1:${chain.portOf(0)}` }
      const hop = await Service.start({ framework, ...upstream })
      chain.hops.unshift(hop)
      if (isLinked) chain.links.unshift(await Link.to(hop.port))
    }
    return chain
  }

  /** Where the hop at this position is called. */
  portOf(position: number): number {
    return this.links[position]?.port ?? this.hop(position).port
  }

  hop(position: number): Service {
    const hop = this.hops.at(position)
    if (hop === undefined) throw new Error(`there is no hop ${position}`)
    return hop
  }

  link(position: number): Link {
    const link = this.links[position]
    if (link === undefined) throw new Error(`there is no link to hop ${position}`)
    return link
  }

  /** Puts a new process in the place of one that was killed. */
  async restart(position: number): Promise<void> {
    const { port } = this.hop(position)
    const behind = this.hops[position + 1]
    const settings: ServiceSettings = {
      framework: frameworks[position] ?? 'http',
      port,
      ...(behind === undefined ? {} : { upstream: `http://127.0.0.1:${behind.port}` }),
    }
    this.hops[position] = await Service.start(settings)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.hops, ...this.links].map((part) => part[Symbol.asyncDispose]()))
  }
}
