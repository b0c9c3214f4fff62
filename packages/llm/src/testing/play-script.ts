import { type Duration, parseDuration } from '@timebudget/core'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dialect, Token } from './dialect.ts'
import type { Script, Step, TokenCounts } from './script.ts'

/** What playing a script needs to know of the request. */
export interface Stage {
  readonly response: ServerResponse
  readonly dialect: Dialect
  readonly streams: boolean
  /** Characters of the request, a quarter of which counts as tokens. */
  readonly requestLength: number
  /** Multiplies every duration. */
  readonly scale: number
  readonly headers: Readonly<Record<string, string>>
  /** Told of each token once it has been written. */
  onToken(): void
}

const defaultSteps: readonly Step[] = [{ text: 'Good to hear from you.' }]

/** Answers as the script says; returns early once the connection has gone. */
export async function playScript(script: Script, stage: Stage): Promise<void> {
  const player = new Player(script, stage)
  try {
    await player.play()
  } catch (error) {
    if (!stage.response.destroyed) throw error
  }
}

class Player {
  readonly #script: Script
  readonly #stage: Stage
  readonly #gone = new AbortController()
  readonly #tokens: Token[] = []
  #opened = false

  constructor(script: Script, stage: Stage) {
    this.#script = script
    this.#stage = stage
    stage.response.once('close', () => this.#gone.abort())
  }

  async play(): Promise<void> {
    const { headersAfter = 0, status = 200, steps = defaultSteps } = this.#script
    await this.#wait(headersAfter)
    if (status !== 200) return this.#answerWhole(this.#errorBody(status))
    if (this.#stage.streams) this.#writeHead('text/event-stream; charset=utf-8')
    for (const step of steps) await this.#take(step)
    if (this.#stage.streams) return this.#endStream()
    return this.#answerWhole(this.#stage.dialect.whole(this.#tokens, this.#counts()))
  }

  #errorBody(status: number): object {
    return this.#stage.dialect.errorBody(status, this.#script.failure ?? { message: `answered ${status}` })
  }

  async #take(step: Step): Promise<void> {
    const { dialect } = this.#stage
    if ('wait' in step) return this.#wait(step.wait)
    if ('raw' in step) return this.#send(step.raw)
    if ('failure' in step) return this.#sendOpened(dialect.failure(step.failure))
    if ('empty' in step) return this.#repeat(step.empty, step.every, () => dialect.empty())
    if ('keepAlive' in step) {
      for (let sent = 0; sent < step.keepAlive; sent += 1) {
        await this.#wait(step.every)
        await this.#send(dialect.keepAlive())
      }
      return
    }
    if ('tokens' in step) return this.#sendTokens(words(step.tokens), step.every)
    if ('text' in step) return this.#sendTokens(tokensOf('text', step.text), step.every)
    if ('reasoning' in step) return this.#sendTokens(tokensOf('reasoning', step.reasoning), step.every)
    return this.#sendTokens(
      step.tool.arguments.map((text, index) => ({
        kind: 'tool',
        text,
        ...(index === 0 ? { name: step.tool.name } : {}),
      })),
      step.every,
    )
  }

  async #repeat(times: number, every: Duration | undefined, frame: () => string): Promise<void> {
    for (let sent = 0; sent < times; sent += 1) {
      await this.#wait(every)
      await this.#sendOpened(frame())
    }
  }

  async #sendTokens(tokens: Iterable<Token>, every: Duration | undefined): Promise<void> {
    for (const token of tokens) {
      await this.#wait(every)
      await this.#sendOpened(this.#stage.dialect.token(token))
      this.#tokens.push(token)
      this.#stage.onToken()
    }
  }

  /** The opening event comes with the first thing that is said, as with the real ones it comes when the model begins. */
  async #sendOpened(frame: string): Promise<void> {
    const opening = this.#opened ? '' : this.#stage.dialect.open(this.#counts())
    this.#opened = true
    await this.#send(opening + frame)
  }

  async #endStream(): Promise<void> {
    const { ending = 'complete' } = this.#script
    if (ending === 'complete' || ending === 'linger')
      await this.#sendOpened(this.#stage.dialect.close(this.#counts()))
    await this.#end()
  }

  async #answerWhole(body: object): Promise<void> {
    const { ending = 'complete' } = this.#script
    const text = JSON.stringify(body)
    this.#writeHead('application/json')
    const isWhole = ending === 'complete' || ending === 'linger'
    await this.#write(isWhole ? text : text.slice(0, text.length / 2))
    await this.#end()
  }

  async #end(): Promise<void> {
    const { response } = this.#stage
    switch (this.#script.ending ?? 'complete') {
      case 'complete':
      case 'cut':
        response.end()
        return
      case 'drop':
        response.socket?.end()
        return
      case 'reset':
        response.socket?.resetAndDestroy()
        return
      case 'silence':
      case 'linger':
        await this.#wait(Infinity)
    }
  }

  #writeHead(contentType: string): void {
    const { response, headers } = this.#stage
    response.writeHead(this.#script.status ?? 200, {
      'content-type': contentType,
      'cache-control': 'no-cache',
      ...headers,
      ...this.#script.headers,
    })
    response.flushHeaders()
  }

  async #send(frame: string): Promise<void> {
    if (this.#stage.streams) await this.#write(frame)
  }

  async #write(text: string): Promise<void> {
    const { response } = this.#stage
    const bytes = Buffer.from(text)
    const size = this.#script.pieceSize ?? bytes.byteLength
    for (let from = 0; from < bytes.byteLength; from += size) {
      this.#gone.signal.throwIfAborted()
      const flowing = response.write(bytes.subarray(from, from + size))
      if (!flowing) await once(response, 'drain', { signal: this.#gone.signal })
      // else the pieces would leave in one packet
      if (this.#script.pieceSize !== undefined) await new Promise(setImmediate)
    }
  }

  #counts(): TokenCounts {
    return {
      input: Math.ceil(this.#stage.requestLength / 4),
      output: this.#tokens.length,
      cached: 0,
      reasoning: this.#tokens.filter(({ kind }) => kind === 'reasoning').length,
      ...this.#script.usage,
    }
  }

  async #wait(duration: Duration = 0): Promise<void> {
    const wait = parseDuration(duration, 'every') * this.#stage.scale
    const { signal } = this.#gone
    signal.throwIfAborted()
    if (wait === Infinity) await once(signal, 'abort')
    else if (wait > 0) await sleep(wait, undefined, { signal })
    signal.throwIfAborted()
  }
}

function tokensOf(kind: Token['kind'], text: string | readonly string[]): Token[] {
  const parts = typeof text === 'string' ? (text.match(/\s*\S+/g) ?? []) : text
  return parts.map((part) => ({ kind, text: part }))
}

function* words(count: number): Generator<Token> {
  for (let index = 0; index < count; index += 1) yield { kind: 'text', text: index === 0 ? 'word' : ' word' }
}
