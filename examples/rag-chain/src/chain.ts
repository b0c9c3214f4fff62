import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** How a chain is started. */
export interface ChainOptions {
  /** Off: plain fetch, no middleware, static timeouts. */
  readonly timebudget: boolean
  /** Further settings for all services, as environment variables. */
  readonly settings?: Readonly<Record<string, string>>
  /** Where the compiled services are; next to this file by default. */
  readonly directory?: URL
}

/** A running chain of processes. */
export interface Chain {
  readonly gateway: string
  /** The model's base URL, or `undefined` if a real one answers. */
  readonly llm: string | undefined
  /** Rejects when a service ends by itself. */
  readonly failure: Promise<never>
  /** Ends all services and waits for their ends. */
  stop(): Promise<void>
}

/** Starts the five services, each in its own process on a free port; rejects, with all ended again, if one does not start. */
export async function startChain(options: ChainOptions): Promise<Chain> {
  const family = new Family(options)
  try {
    const external = process.env['OPENAI_BASE_URL']
    const [llm, retrieve, rerank] = await Promise.all([
      external ? undefined : family.start('llm'),
      family.start('retrieve'),
      family.start('rerank'),
    ])
    const orchestrator = await family.start('orchestrator', {
      RETRIEVE_URL: retrieve,
      RERANK_URL: rerank,
      OPENAI_BASE_URL: external ?? `${llm}/v1`,
    })
    const gateway = await family.start('gateway', { ORCHESTRATOR_URL: orchestrator })
    return { gateway, llm, failure: family.failure, stop: () => family.stop() }
  } catch (error) {
    await family.stop()
    throw error
  }
}

class Family {
  readonly failure: Promise<never>
  readonly #options: ChainOptions
  readonly #children = new Set<ChildProcess>()
  #fail: (error: Error) => void = () => {}
  #stopping = false

  constructor(options: ChainOptions) {
    this.#options = options
    this.failure = new Promise((_, reject) => (this.#fail = reject))
    this.failure.catch(() => {})
  }

  /** Starts one service and gives its URL. */
  async start(name: string, urls: Record<string, string> = {}): Promise<string> {
    const { timebudget, settings, directory = new URL('.', import.meta.url) } = this.#options
    const child = fork(fileURLToPath(new URL(`${name}.js`, directory)), {
      env: { ...process.env, ...settings, ...urls, PORT: '0', TIMEBUDGET: timebudget ? 'on' : 'off' },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#children.add(child)
    const lastWords = keepLastLines(child)
    const ended = once(child, 'exit').then(([code, signal]) => {
      this.#children.delete(child)
      throw new Error(`${name} ended with ${signal ?? code}\n${lastWords()}`)
    })
    ended.catch((error: Error) => this.#stopping || this.#fail(error))
    const [{ port }] = await Promise.race([once(child, 'message'), ended])
    return `http://127.0.0.1:${port}`
  }

  async stop(): Promise<void> {
    this.#stopping = true
    await Promise.all([...this.#children].map(end))
  }
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const force = setTimeout(() => child.kill('SIGKILL'), 2000)
  await exited
  clearTimeout(force)
}

function keepLastLines(child: ChildProcess): () => string {
  let tail = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (tail = (tail + text).slice(-2000)))
  return () => tail
}
