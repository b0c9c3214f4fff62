import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** What a hop is started with; see hop.mjs. */
export interface HopSettings {
  readonly framework: 'express' | 'koa' | 'fastify'
  readonly upstream: string
  readonly options?: Readonly<Record<string, unknown>>
  /** Milliseconds by which its wall clock is off. */
  readonly clockShift?: number
  readonly h2?: boolean
  /** A URL it calls, detached, some time after it has entered a request. */
  readonly background?: string
}

/** Something a hop told of itself. */
export interface HopReport {
  readonly event: string
  readonly [detail: string]: unknown
}

/** A hop in a process of its own. */
export class Hop {
  readonly reports: HopReport[] = []
  readonly #child: ChildProcess
  readonly #waiting = new Set<() => void>()

  private constructor(settings: HopSettings) {
    this.#child = fork(fileURLToPath(new URL('hop.mjs', import.meta.url)), [JSON.stringify(settings)], {
      execArgv: [],
    })
    this.#child.on('message', (report: HopReport) => {
      this.reports.push(report)
      for (const wake of [...this.#waiting]) wake()
    })
  }

  static async start(settings: HopSettings): Promise<Hop> {
    const hop = new Hop(settings)
    await hop.report('listening')
    return hop
  }

  get url(): string {
    return String(this.reports.find(({ event }) => event === 'listening')?.['url'])
  }

  /** The first report of that event, as soon as there is one. */
  async report(event: string): Promise<HopReport> {
    for (;;) {
      const found = this.reports.find((report) => report.event === event)
      if (found !== undefined) return found
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake)
          resolve()
        }
        this.#waiting.add(wake)
      })
    }
  }

  all(event: string): readonly HopReport[] {
    return this.reports.filter((report) => report.event === event)
  }

  stop(): void {
    this.#child.kill('SIGKILL')
  }
}

/** Hops that are stopped together. */
export class Chain {
  readonly hops: Hop[] = []

  /** Starts a hop in front of those that are there already. */
  async put(settings: Omit<HopSettings, 'upstream'> & { readonly upstream?: string }): Promise<Hop> {
    const hop = await Hop.start({ ...settings, upstream: settings.upstream ?? this.entry.url })
    this.hops.unshift(hop)
    return hop
  }

  get entry(): Hop {
    const entry = this.hops[0]
    if (entry === undefined) throw new Error('the chain is empty')
    return entry
  }

  [Symbol.dispose](): void {
    for (const hop of this.hops) hop.stop()
  }
}

/** gateway (Express) -> orchestrator (Koa) -> leaf (Fastify) -> upstream; front to back in `hops`. */
export async function threeFrameworks(
  upstream: string,
  entry: Partial<HopSettings> = {},
  behind: Partial<HopSettings> = {},
): Promise<Chain> {
  const chain = new Chain()
  await chain.put({ framework: 'fastify', upstream, ...behind })
  await chain.put({ framework: 'koa', ...behind })
  await chain.put({ framework: 'express', ...entry })
  return chain
}
