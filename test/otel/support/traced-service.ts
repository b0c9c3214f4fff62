import { type ChildProcess, fork } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { LedgerEntry, Outcome } from '@timebudget/core'
import { onTestFinished } from 'vitest'
import { freePort } from '../../support/free-port.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** An application in a folder of its own, with the newer line of OpenTelemetry's SDK installed; removed when the test ends. */
function applicationWithNewerSdk(service: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'timebudget-otel-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const newer = join(root, 'node_modules/.cache/timebudget-otel3/node_modules/@opentelemetry')
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(newer, join(folder, 'node_modules/@opentelemetry'))
  writeFileSync(join(folder, 'app.mjs'), `import ${JSON.stringify(pathToFileURL(service).href)}\n`)
  return join(folder, 'app.mjs')
}

/** What a service is started with; see traced-service.mjs. */
export interface ServiceSettings {
  /** `esm`: another one, esm-service.mjs, which takes no settings and tells of no requests. */
  readonly framework: 'express' | 'koa' | 'fastify' | 'node' | 'esm'
  /** Where it listens; anywhere by default. */
  readonly port?: number
  readonly next?: string
  /** A redis:// address. */
  readonly redis?: string
  /** Where a PostgreSQL is; what pg's Pool takes. */
  readonly postgres?: Readonly<Record<string, unknown>>
  readonly options?: Readonly<Record<string, unknown>>
  /** The line of the SDK: 2, for Node 20, or 3, for Node 22.15. */
  readonly line?: 2 | 3
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
    line = 2,
    env = {},
    imports = ['@timebudget/otel/register'],
    ...settings
  }: ServiceSettings) {
    const service = here(settings.framework === 'esm' ? 'esm-service.mjs' : 'traced-service.mjs')
    const { NODE_OPTIONS: _unused, ...inherited } = process.env
    this.#child = fork(line === 3 ? applicationWithNewerSdk(service) : service, [JSON.stringify(settings)], {
      ...(node === undefined ? {} : { execPath: node }),
      // from where the package to import is found
      cwd: root,
      execArgv: ['--expose-gc', ...imports.flatMap((name) => ['--import', name])],
      env: {
        ...inherited,
        OTEL_SERVICE_NAME: settings.framework,
        OTEL_METRICS_EXPORTER: 'none',
        OTEL_LOGS_EXPORTER: 'none',
        OTEL_BSP_SCHEDULE_DELAY: '50',
        ...env,
      },
    })
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

  /** Bytes of the heap that are in use after a collection. */
  async memory(): Promise<number> {
    const before = this.all('memory').length
    this.#child.send('memory')
    for (;;) {
      const told = this.all('memory')[before]
      if (told !== undefined) return Number(told['used'])
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
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
