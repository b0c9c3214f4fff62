import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dyingWithUs } from '../support/dying-with-us.ts'
import { freePort } from '../support/free-port.ts'

/** One series of an answer. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: number
}

/** An alert as Prometheus sees it. */
export interface Alert {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly state: 'pending' | 'firing'
}

/** A Prometheus of a test's own. */
export interface Prometheus {
  /** What a query gives now. */
  query(expression: string): Promise<readonly Sample[]>
  alerts(): Promise<readonly Alert[]>
  [Symbol.asyncDispose](): Promise<void>
}

/** What it scrapes, four times a second. */
export interface PrometheusSettings {
  /** Ports of this host by job. */
  readonly jobs: Readonly<Record<string, number>>
  /** The text of a file of rules. */
  readonly rules?: string | undefined
}

/** Starts one with data of its own, and waits until it is ready. */
export async function startPrometheus(
  program: string,
  { jobs, rules }: PrometheusSettings,
): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'timebudget-prometheus-'))
  const port = await freePort()
  const config = {
    global: { scrape_interval: '250ms', scrape_timeout: '250ms', evaluation_interval: '250ms' },
    rule_files: rules === undefined ? [] : [join(folder, 'rules.yml')],
    scrape_configs: Object.entries(jobs).map(([job, target]) => ({
      job_name: job,
      static_configs: [{ targets: [`127.0.0.1:${target}`] }],
    })),
  }
  // JSON is YAML
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
  if (rules !== undefined) writeFileSync(join(folder, 'rules.yml'), rules)
  const [first, ...rest] = [
    ...dyingWithUs(),
    program,
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=error',
  ]
  const server = spawn(first, rest, { stdio: ['ignore', 'ignore', 'inherit'] })
  const exited = once(server, 'exit')
  const url = `http://127.0.0.1:${port}`
  await ready(url)
  const ask = async (path: string): Promise<unknown> => {
    const answer: unknown = await (await fetch(url + path)).json()
    const { status, data, error } = answer as { status: string; data: unknown; error?: string }
    if (status !== 'success') throw new Error(`${path}: ${error ?? status}`)
    return data
  }
  return {
    async query(expression) {
      const found = await ask(`/api/v1/query?query=${encodeURIComponent(expression)}`)
      const { result } = found as {
        result: Array<{ metric: Record<string, string>; value: [number, string] }>
      }
      return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }))
    },
    async alerts() {
      const found = await ask('/api/v1/alerts')
      return (found as { alerts: Alert[] }).alerts
    },
    async [Symbol.asyncDispose]() {
      server.kill('SIGKILL')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function ready(url: string): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await fetch(`${url}/-/ready`).catch(() => undefined)
    if (answer?.ok === true) return
    if (attempt === 200) throw new Error('Prometheus did not become ready')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
