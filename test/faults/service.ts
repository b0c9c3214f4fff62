import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { findProgram } from '../support/requirements.ts'

/** Something a service told of itself. */
export interface Report {
  readonly event: string
  readonly [detail: string]: unknown
}

/** What hop.mjs is started with. */
export interface ServiceSettings {
  readonly framework?: 'express' | 'koa' | 'fastify' | 'http'
  /** Where it passes everything on to; without one it answers itself. */
  readonly upstream?: string
  readonly port?: number
  readonly host?: string
  /** Those of `deadline()`. */
  readonly options?: Readonly<Record<string, unknown>>
  /** Milliseconds from SIGTERM until it stops to listen. */
  readonly lameDuck?: number
  /** Milliseconds from SIGTERM until requests are ended. */
  readonly grace?: number
}

/** What leaning.mjs is started with. */
interface LeaningSettings {
  /** The port of its Redis. */
  readonly redis: number
}

type Settings = ServiceSettings | LeaningSettings

/** How its process is run. */
export interface ServiceRun {
  readonly script?: string
  readonly nodeArguments?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** A program and its arguments that run it in their turn. */
  readonly within?: readonly string[]
}

/** A service in a process of its own. */
export class Service {
  readonly reports: Report[] = []
  readonly process: ChildProcess
  /** How it ended: its exit code, or the signal. */
  readonly ended: Promise<number | string>
  readonly #waiting = new Set<() => void>()

  private constructor(settings: Settings, run: ServiceRun) {
    const script = fileURLToPath(new URL(run.script ?? 'hop.mjs', import.meta.url))
    const [program = '', ...rest] = [
      // unlike another signal, SIGKILL ends a frozen process too
      ...(findProgram('setpriv') === undefined ? [] : ['setpriv', '--pdeathsig=KILL']),
      ...(run.within ?? []),
      ...[process.execPath, ...(run.nodeArguments ?? []), script, JSON.stringify(settings)],
    ]
    this.process = spawn(program, rest, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, NODE_OPTIONS: '', ...run.environment },
    })
    this.ended = once(this.process, 'exit').then(([code, signal]) => (code ?? signal) as number | string)
    this.process.on('message', (report: Report) => {
      this.reports.push(report)
      for (const wake of [...this.#waiting]) wake()
    })
  }

  /** Starts it and waits until it listens. */
  static async start(settings: Settings, run: ServiceRun = {}): Promise<Service> {
    const service = new Service(settings, run)
    const early = service.ended.then((how) => {
      throw new Error(`the service ended at once: ${how}`)
    })
    early.catch(() => undefined)
    await Promise.race([service.report('listening'), early])
    return service
  }

  get port(): number {
    return Number(this.all('listening')[0]?.['port'])
  }

  /** The `count`th report of that event that fits, as soon as there is one. */
  async report(event: string, details: Readonly<Record<string, unknown>> = {}, count = 1): Promise<Report> {
    for (;;) {
      const found = this.all(event, details)[count - 1]
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

  all(event: string, details: Readonly<Record<string, unknown>> = {}): readonly Report[] {
    return this.reports.filter(
      (report) =>
        report.event === event && Object.entries(details).every(([name, value]) => report[name] === value),
    )
  }

  /** How many requests it is at. */
  get running(): number {
    return this.all('started').length - this.all('finished').length
  }

  freeze(): void {
    this.process.kill('SIGSTOP')
  }

  thaw(): void {
    this.process.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL')
    await this.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) await this.kill()
  }
}
