import type { EventSourceMessage } from 'eventsource-parser'
import { milliseconds } from './duration.ts'
import {
  type ChatEnd,
  type Ending,
  failureOf,
  type Fields,
  fieldsOf,
  messageFor,
  parseData,
  refusalOf,
} from './ending.ts'
import { type Limit, Limits } from './limits.ts'
import { readEvents } from './read-events.ts'
import type { Chat, ChatOptions } from './stream-chat.ts'

/** How often in a row a lost connection is sought again: for some 15 s. */
const mostReconnects = 8

/** One question and its answer, over as many connections as it takes. */
export class ChatRun implements Chat {
  text = ''
  readonly ended: Promise<ChatEnd>
  readonly #options: ChatOptions
  readonly #body: string
  readonly #startedAt = performance.now()
  readonly #budget: number
  readonly #limits: Limits
  #controller = new AbortController()
  #resolve!: (end: ChatEnd) => void
  #isOver = false
  #hasBegun = false
  #streamId: string | undefined
  #lastId = 0
  #failures = 0

  constructor(options: ChatOptions) {
    const { budget = '60s', firstToken = '15s', idle = { content: '30s', transport: '10s' } } = options
    const apart = typeof idle === 'object' ? idle : { content: idle, transport: idle }
    this.#options = options
    this.#body = JSON.stringify(options.body)
    this.#budget = milliseconds(budget, 'budget')
    const settings = {
      first_token: milliseconds(firstToken, 'firstToken'),
      stalled: milliseconds(apart.content, 'idle'),
      silent: milliseconds(apart.transport, 'idle'),
      total: milliseconds(options.total ?? this.#budget + 1_000, 'total'),
    }
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#limits = new Limits(settings, (limit) => this.#limitPassed(limit))
    this.#limits.start('first_token', 'silent', 'total')
    void this.#run()
  }

  readonly stop = (): void => this.#finish({ outcome: 'stopped' })

  /** The one way it ends, by whatever comes first. */
  #finish(ending: Ending): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#hangUp()
    this.#limits.stop('first_token', 'total')
    const { outcome } = ending
    // the server does not know of this end: leaving would keep the work for a while, and nobody is to pay for what nobody will read
    if (this.#streamId !== undefined && !('data' in ending)) this.#call('DELETE').catch(() => {})
    const { onDone, onError } = this.#options
    const end: ChatEnd = { ...ending, text: this.text, message: messageFor(outcome, this.#options) }
    this.#tell(() => (outcome === 'done' ? onDone : onError)?.(end))
    this.#resolve(end)
  }

  async #run(): Promise<void> {
    for (let isResumed = false; !this.#isOver; isResumed = true) {
      if (isResumed) await this.#pause()
      if (this.#isOver) return
      try {
        await this.#follow({ isResumed })
      } catch {
        // a connection that broke, or a server that is not back yet
      }
      if (!this.#canReconnect()) this.#finish({ outcome: 'interrupted' })
    }
  }

  async #follow({ isResumed }: { readonly isResumed: boolean }): Promise<void> {
    const response = await this.#call(isResumed ? 'GET' : 'POST')
    const { body, headers, ok, status } = response
    if (ok && body !== null && (headers.get('content-type') ?? '').startsWith('text/event-stream')) {
      await readEvents(body, {
        onBytes: () => this.#limits.start('silent'),
        onEvent: (event) => this.#take(event),
      })
    } else if (!isResumed || status < 500) this.#finish(await refusalOf(response, { isResumed }))
  }

  /** Longer from time to time, and never for all pages at the same moment. */
  async #pause(): Promise<void> {
    this.#tell(() => this.#options.onReconnect?.())
    this.#hangUp()
    const longest = Math.min(4_000, 200 * 2 ** this.#failures)
    this.#failures += 1
    await new Promise((resolve) => setTimeout(resolve, longest * (0.5 + Math.random() / 2)))
    if (this.#isOver) return
    this.#limits.start('silent')
    this.#goesOn()
  }

  /** Something is done for the answer; what comes before its first token is that one's limit's to judge. */
  #goesOn(): void {
    if (!this.#hasBegun) return
    this.#limits.stop('first_token')
    this.#limits.start('stalled')
  }

  /** Where there is no connection, nobody is silent. */
  #hangUp(): void {
    this.#limits.stop('silent', 'stalled')
    this.#controller.abort()
    this.#controller = new AbortController()
  }

  #canReconnect(): boolean {
    return this.#streamId !== undefined && this.#failures < mostReconnects
  }

  #call(method: 'POST' | 'GET' | 'DELETE'): Promise<Response> {
    const { url, headers, credentials = 'same-origin' } = this.#options
    const left = Math.max(1, Math.ceil(this.#budget - this.#elapsed()))
    const isPost = method === 'POST'
    return fetch(isPost ? url : withStream(url, this.#streamId ?? ''), {
      method,
      credentials,
      headers: {
        ...headers,
        accept: 'text/event-stream',
        'x-request-timeout-ms': String(left),
        'x-request-deadline': String(Date.now() + left),
        ...(isPost ? { 'content-type': 'application/json' } : {}),
        ...(method === 'GET' ? { 'last-event-id': String(this.#lastId) } : {}),
      },
      signal: this.#controller.signal,
      // a page that is being closed still gets word out that its user has stopped
      keepalive: method === 'DELETE',
      ...(isPost ? { body: this.#body } : {}),
    })
  }

  /** Returns whether more is expected. */
  #take({ event = 'message', data: text, id }: EventSourceMessage): boolean {
    const number = Number(id)
    // taken up again, a server may repeat what is here already
    if (this.#streamId !== undefined && number <= this.#lastId) return true
    if (number > 0) this.#lastId = number
    this.#failures = 0
    const data = parseData(text)
    const fields = fieldsOf(data)
    this.#hasBegun ||= event === 'token'
    // a heartbeat says that the server lives, and nothing of its model
    if (event !== 'heartbeat') this.#goesOn()
    if (event === 'token') this.#takeToken(fields)
    else if (event === 'heartbeat') this.#think(fields)
    else if (event === 'stream') this.#streamId = String(fields['id'])
    else if (event === 'done') this.#finish({ outcome: 'done', data })
    else if (event === 'error') this.#finish(failureOf(fields))
    else this.#tell(() => this.#options.onEvent?.(event, data))
    return !this.#isOver
  }

  #takeToken(fields: Fields): void {
    const { text, type = 'text' } = fields
    if (typeof text !== 'string') return
    if (type === 'reasoning') return this.#think({ text })
    if (type === 'text') this.text += text
    this.#tell(() => this.#options.onToken?.(text, fields))
  }

  #think({ remaining, text }: Fields): void {
    const thinking = {
      elapsed: this.#elapsed(),
      remaining: typeof remaining === 'number' ? remaining : undefined,
      text: typeof text === 'string' ? text : undefined,
    }
    this.#tell(() => this.#options.onThinking?.(thinking))
  }

  #elapsed(): number {
    return performance.now() - this.#startedAt
  }

  #limitPassed(limit: Limit): void {
    if (limit !== 'silent') this.#finish({ outcome: limit })
    // the connection is dead, while the server may still hold the stream
    else if (this.#canReconnect()) this.#hangUp()
    else this.#finish({ outcome: 'stalled' })
  }

  /** A mistake of the page's is reported where its others are, and leaves the answer alone. */
  #tell(callback: () => void): void {
    try {
      callback()
    } catch (error) {
      void Promise.reject(error)
    }
  }
}

function withStream(url: string, id: string): string {
  const path = url.replace(/#.*/, '')
  return `${path}${path.includes('?') ? '&' : '?'}stream=${encodeURIComponent(id)}`
}
