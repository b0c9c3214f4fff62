import { Link } from './link.ts'
import { Service, type ServiceSettings } from './service.ts'

const frameworks = ['express', 'koa', 'fastify'] as const

/** Where the hop at one position runs. */
export interface Place {
  /** What it is reached by. */
  readonly host: string
  /** The program and arguments that put a process there. */
  readonly within: readonly string[]
}

const here: Place = { host: '127.0.0.1', within: [] }

/** Express -> Koa -> Fastify, each in a process of its own, of which one is struck by a fault. */
export class FaultyChain {
  /** Front to back. */
  readonly hops: Service[] = []
  /** The network in front of each hop, where there is one that can be cut. */
  readonly links: Link[] = []
  readonly #places: readonly Place[]

  private constructor(places: readonly Place[]) {
    this.#places = places
  }

  static async start({
    places = [here, here, here],
    isLinked = false,
  }: { readonly places?: readonly Place[]; readonly isLinked?: boolean } = {}): Promise<FaultyChain> {
    const chain = new FaultyChain(places)
    for (const position of [2, 1, 0]) {
      const hop = await chain.#start(position)
      chain.hops[position] = hop
      if (isLinked) chain.links[position] = await Link.to(hop.port)
    }
    return chain
  }

  /** Puts a new process in the place of one that was killed. */
  async restart(position: number): Promise<void> {
    this.hops[position] = await this.#start(position, this.hop(position).port)
  }

  /** Where the hop at this position is called. */
  addressOf(position: number): { readonly host: string; readonly port: number } {
    const { host } = this.#placeOf(position)
    return { host, port: this.links[position]?.port ?? this.hop(position).port }
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

  #placeOf(position: number): Place {
    return this.#places[position] ?? here
  }

  async #start(position: number, port = 0): Promise<Service> {
    const framework = frameworks[position] ?? 'http'
    const { host, within } = this.#placeOf(position)
    const settings: ServiceSettings = { framework, port, host }
    if (position + 1 === frameworks.length) return Service.start(settings, { within })
    const behind = this.addressOf(position + 1)
    const upstream = `http://${behind.host}:${behind.port}`
    return Service.start({ ...settings, upstream }, { within })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.hops, ...this.links].map((part) => part[Symbol.asyncDispose]()))
  }
}
