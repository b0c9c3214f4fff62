import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** How the OpenTelemetry of a service is set up; see propagating-telemetry.mjs. */
export interface Telemetry {
  /** 2: the line of the SDK for Node 20; 3: that for Node 22.15. */
  readonly line?: 2 | 3
  /** A whole NodeSDK, one that has nothing to export to, or less. */
  readonly sdk?: 'node' | 'silent' | 'instrumentations' | 'propagator'
  readonly express?: 'express' | 'express-57'
  /** Registers the instrumentations twice. */
  readonly twice?: boolean
  /** Copies of @opentelemetry/api. */
  readonly copies?: 1 | 2
  /** Where spans are exported to. */
  readonly exporter?: string
  /** The propagator's. */
  readonly options?: { readonly inject?: boolean | readonly string[]; readonly service?: string }
}

/** What a chain of services is started with; see propagating-services.mjs. */
export interface ChainSettings {
  /** Front to back. */
  readonly frameworks: ReadonlyArray<'express' | 'koa' | 'fastify' | 'esm'>
  /** What the last of them calls. */
  readonly upstream: string
  readonly telemetry?: Telemetry
  /** The Node that runs it. */
  readonly node?: string
}

/** Something the services told. */
export interface ChainReport {
  readonly event: string
  readonly [detail: string]: unknown
}

/** A finished span; the kinds are OpenTelemetry's, 1 a server's and 2 a client's. */
export interface ToldSpan {
  readonly kind: number
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parent: string | undefined
}

/** A chain of services in a process of its own. */
export class PropagatingChain implements Disposable {
  readonly reports: ChainReport[] = []
  readonly #child: ChildProcess
  readonly #waiting = new Set<() => void>()

  private constructor({ node, telemetry = {}, ...settings }: ChainSettings) {
    const program = fileURLToPath(new URL('propagating-services.mjs', import.meta.url))
    const { NODE_OPTIONS: _unused, ...inherited } = process.env
    this.#child = fork(program, [JSON.stringify(settings)], {
      ...(node === undefined ? {} : { execPath: node }),
      execArgv: ['--import', new URL('propagating-telemetry.mjs', import.meta.url).href],
      env: {
        ...inherited,
        OTEL_TRACES_EXPORTER: 'none',
        OTEL_METRICS_EXPORTER: 'none',
        OTEL_LOGS_EXPORTER: 'none',
        PROPAGATING: JSON.stringify(telemetry),
      },
    })
    this.#child.on('message', (report: ChainReport) => this.#told(report))
    this.#child.on('exit', (code) => this.#told({ event: 'exited', code }))
  }

  static async start(settings: ChainSettings): Promise<PropagatingChain> {
    const chain = new PropagatingChain(settings)
    await chain.until(() => chain.all('listening').length > 0)
    return chain
  }

  /** Where its first service listens. */
  get url(): string {
    return String(this.all('listening')[0]?.['url'])
  }

  all(event: string): readonly ChainReport[] {
    return this.reports.filter((report) => report.event === event)
  }

  /** What each service told when the request to that path came in, front to back. */
  entered(path: string): readonly ChainReport[] {
    return this.all('entered').filter((report) => report['path'] === path)
  }

  /** The finished spans of a trace and a kind: OpenTelemetry's 1 for a server's, 2 for a client's. */
  spans(traceId: string, kind: 1 | 2): readonly ToldSpan[] {
    return this.all('span')
      .map((report) => report as unknown as ToldSpan)
      .filter((span) => span.traceId === traceId && span.kind === kind)
  }

  /** Waits until it has told what is waited for; throws if it exits before. */
  async until(isTold: () => boolean): Promise<void> {
    while (!isTold()) {
      if (this.reports.some(({ event }) => event === 'exited')) throw new Error('the services have exited')
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake)
          resolve()
        }
        this.#waiting.add(wake)
      })
    }
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL')
  }

  #told(report: ChainReport): void {
    this.reports.push(report)
    for (const wake of [...this.#waiting]) wake()
  }
}

/** The values of a header among names and values in turn. */
export function valuesOf(rawHeaders: readonly string[], header: string): readonly string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === header)
}
