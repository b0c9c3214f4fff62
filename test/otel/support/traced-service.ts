import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { LedgerEntry, Outcome } from '@timebudget/core'
import { onTestFinished } from 'vitest'
import { freePort } from '../../support/free-port.ts'

/** What a service is started with; see traced-service.mjs. */
export interface ServiceSettings {
  readonly framework: 'express' | 'koa' | 'fastify' | 'node'
  /** Where it listens; anywhere by default. */
  readonly port?: number
  readonly next?: string
  /** A redis:// address. */
  readonly redis?: string
  readonly options?: Readonly<Record<string, unknown>>
  /** The Node that runs it. */
  readonly node?: string
  readonly env?: Readonly<Record<string, string>>
  /** Modules that are imported before it. */
  readonly imports?: readonly string[]
}

/** What a service's own events said of a request. */
export interface FinishedRequest {
  readonly outcome: Outcome
  readonly elapsed: number
  readonly budget: number
  readonly entries: readonly LedgerEntry[]
}

interface Report {
  readonly event: string
  readonly [detail: string]: unknown
}

/** A service in a process of its own, stopped when the test ends. */
export class TracedService {
  readonly reports: Report[] = []
  readonly #child: ChildProcess
  readonly #waiting = new Set<() => void>()

  private constructor({
    node,
    env = {},
    imports = ['@timebudget/otel/register'],
    ...settings
  }: ServiceSettings) {
    const { NODE_OPTIONS: _unused, ...inherited } = process.env
    this.#child = fork(
      fileURLToPath(new URL('traced-service.mjs', import.meta.url)),
      [JSON.stringify(settings)],
      {
        ...(node === undefined ? {} : { execPath: node }),
        execArgv: imports.flatMap((name) => ['--import', name]),
        env: {
          ...inherited,
          OTEL_SERVICE_NAME: settings.framework,
          OTEL_METRICS_EXPORTER: 'none',
          OTEL_LOGS_EXPORTER: 'none',
          OTEL_BSP_SCHEDULE_DELAY: '50',
          ...env,
        },
      },
    )
    this.#child.on('message', (report: Report) => this.#told(report))
    this.#child.on('exit', (code) => this.#told({ event: 'exited', code }))
    onTestFinished(() => void this.#child.kill('SIGKILL'))
  }

  static async start(settings: ServiceSettings): Promise<TracedService> {
    const service = new TracedService(settings)
    await service.report('listening')
    return service
  }

  get url(): string {
    return String(this.all('listening')[0]?.['url'])
  }

  all(event: string): readonly Report[] {
    return this.reports.filter((report) => report.event === event)
  }

  /** The first report of that event, as soon as there is one. */
  async report(event: string): Promise<Report> {
    for (;;) {
      const [found] = this.all(event)
      if (found !== undefined) return found
      if (this.all('exited').length > 0) throw new Error(`it has exited: ${JSON.stringify(this.reports)}`)
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
  }

  async finished(): Promise<FinishedRequest> {
    const { outcome, elapsed, budget, entries } = await this.report('finished')
    return { outcome, elapsed, budget, entries } as FinishedRequest
  }

  #told(report: Report): void {
    this.reports.push(report)
    for (const wake of [...this.#waiting]) wake()
    this.#waiting.clear()
  }
}

/** Express, Koa and Fastify behind each other; front to back. */
export async function tracedChain(
  settings: Omit<ServiceSettings, 'framework' | 'next' | 'port'>,
): Promise<readonly TracedService[]> {
  const koa = await freePort()
  const fastify = await freePort()
  const urlOf = (port: number): string => `http://127.0.0.1:${port}/`
  // at the same time: each takes seconds to load
  return Promise.all([
    TracedService.start({ ...settings, framework: 'express', next: urlOf(koa) }),
    TracedService.start({ ...settings, framework: 'koa', port: koa, next: urlOf(fastify) }),
    TracedService.start({ ...settings, framework: 'fastify', port: fastify }),
  ])
}
