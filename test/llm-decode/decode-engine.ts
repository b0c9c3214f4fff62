import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** How many tokens the engine had begun to read of prompts and to decode since its start, and when that was. */
export interface DecodeCount {
  readonly read: number
  readonly decoded: number
  readonly epoch: number
  /** What became of the request's deadline; only of what was told of it. */
  readonly outcome?: string
}

type DecodeEvent = 'begun' | 'reading' | 'underway' | 'told' | 'ended'

interface EngineReport extends DecodeCount {
  readonly event: 'listening' | DecodeEvent
  readonly id?: number
  readonly url?: string
}

const installed = new URL('../../node_modules/.cache/timebudget-llama/node_modules/', import.meta.url)

/** The URL of node-llama-cpp, if `scripts/install-apart.mjs` has installed it. */
export function findDecodeLibrary(): string | undefined {
  const library = new URL('node-llama-cpp/dist/index.js', installed)
  return existsSync(library) ? library.href : undefined
}

/** One request that the engine decodes for. */
export class Decoding {
  readonly #seen = new Map<DecodeEvent, DecodeCount>()
  readonly #waiting = new Set<() => void>()

  note(event: DecodeEvent, count: DecodeCount): void {
    this.#seen.set(event, count)
    for (const wake of [...this.#waiting]) wake()
  }

  /** The count when it came. */
  get begun(): Promise<DecodeCount> {
    return this.#countAt('begun')
  }

  /** The count when the first piece of its prompt had been read. */
  get reading(): Promise<DecodeCount> {
    return this.#countAt('reading')
  }

  /** The count when its tenth token had come. */
  get underway(): Promise<DecodeCount> {
    return this.#countAt('underway')
  }

  /** The count when the engine's process heard that nobody waits any more. */
  get told(): Promise<DecodeCount> {
    return this.#countAt('told')
  }

  /** The count when the engine had ended its work on it. */
  get ended(): Promise<DecodeCount> {
    return this.#countAt('ended')
  }

  async #countAt(event: DecodeEvent): Promise<DecodeCount> {
    for (;;) {
      const count = this.#seen.get(event)
      if (count !== undefined) return count
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake)
          resolve()
        }
        this.#waiting.add(wake)
      })
    }
  }
}

/** llama.cpp behind a server of ours, in a process of its own. */
export class DecodeEngine {
  readonly url: string
  readonly #child: ChildProcess
  readonly #decodings = new Map<number, Decoding>()
  readonly #expected: ((decoding: Decoding) => void)[] = []

  private constructor(child: ChildProcess, url: string) {
    this.#child = child
    this.url = url
    child.on('message', (report: EngineReport) => this.#hear(report))
  }

  static async start(modelPath: string, decodeLibrary: string): Promise<DecodeEngine> {
    const settings = JSON.stringify({ library: decodeLibrary, model: modelPath })
    const child = fork(fileURLToPath(new URL('engine.mjs', import.meta.url)), [settings], { execArgv: [] })
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`the engine ended with ${code} before it listened`)
    })
    const [report] = (await Promise.race([once(child, 'message'), ended])) as [EngineReport]
    ended.catch(() => undefined)
    return new DecodeEngine(child, String(report.url))
  }

  /** The next request that reaches the engine. Ask before sending it. */
  nextDecoding(): Promise<Decoding> {
    return new Promise((resolve) => this.#expected.push(resolve))
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL')
  }

  #hear({ event, id = 0, ...count }: EngineReport): void {
    switch (event) {
      case 'listening':
        return
      case 'begun': {
        const decoding = new Decoding()
        decoding.note(event, count)
        this.#decodings.set(id, decoding)
        this.#expected.shift()?.(decoding)
        return
      }
      case 'reading':
      case 'underway':
      case 'told':
      case 'ended':
        this.#decodings.get(id)?.note(event, count)
    }
  }
}
