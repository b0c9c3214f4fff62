import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { freePort } from '../../support/free-port.ts'

/** A span as autotel-mcp gives it back. */
export interface StoredSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | null
  readonly operationName: string
  readonly serviceName: string
  readonly statusCode: string
  readonly tags: Readonly<Record<string, unknown>>
}

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** Where autotel-mcp is, an OTLP receiver of somebody else's that answers over the Model Context Protocol. */
export const autotelProgram: string = `${root}node_modules/.cache/timebudget-autotel/node_modules/autotel-mcp/bin/autotel-mcp`

interface Answer {
  readonly id?: number
  readonly result?: { readonly content?: ReadonlyArray<{ readonly text: string }> }
}

/** An autotel-mcp that keeps what it receives in memory, stopped when the test ends. */
export class Autotel {
  readonly url: string
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, (answer: Answer) => void>()
  #asked = 0

  private constructor(child: ChildProcess, port: number) {
    this.url = `http://127.0.0.1:${port}`
    this.#child = child
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (text + chunk).split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) this.#answered(JSON.parse(line))
    })
  }

  static async start(node: string): Promise<Autotel> {
    const port = await freePort()
    const child = spawn(node, [autotelProgram, '--collector-port', String(port)], {
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    await once(child, 'spawn')
    onTestFinished(() => void child.kill('SIGKILL'))
    const autotel = new Autotel(child, port)
    const clientInfo = { name: 'timebudget', version: '1' }
    await autotel.#ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo })
    autotel.#send({ method: 'notifications/initialized' })
    return autotel
  }

  /** The spans of a trace, as soon as that many have come. */
  async trace(traceId: string, count: number): Promise<readonly StoredSpan[]> {
    for (;;) {
      const answer = await this.#ask('tools/call', { name: 'get_trace', arguments: { traceId } })
      const spans = spansIn(answer.result?.content?.[0]?.text ?? '{}')
      if (spans.length >= count) return spans
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  #ask(method: string, params: object): Promise<Answer> {
    const id = (this.#asked += 1)
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.#send({ id, method, params })
    })
  }

  #send(message: object): void {
    this.#child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }

  #answered(answer: Answer): void {
    if (answer.id !== undefined) this.#waiting.get(answer.id)?.(answer)
  }
}

/** It keeps attributes that all spans have with the trace. */
function spansIn(text: string): readonly StoredSpan[] {
  const { data } = JSON.parse(text) as {
    data?: { resource?: Record<string, unknown>; spans?: readonly StoredSpan[] }
  }
  return (data?.spans ?? []).map((span) => ({ ...span, tags: { ...data?.resource, ...span.tags } }))
}
