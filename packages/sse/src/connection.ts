import type { ServerResponse } from 'node:http'
import type { Clock } from '@timebudget/core'
import { comment, retryFrame } from './frame.ts'
import { type Beating, type Heartbeats, heartbeatsOf } from './heartbeats.ts'
import { isOver } from './target.ts'

/** How a connection is kept alive. Milliseconds. */
export interface ConnectionOptions {
  readonly heartbeat: number
  readonly retry: number | undefined
  readonly clock: Clock
  /** The heartbeat to send: an event while its client still waits for the first token, else nothing but a comment. */
  readonly beat: () => string
}

/** One response that carries an event stream: whole events only, back pressure, heartbeats, and a known end. */
export class Connection implements Beating {
  readonly #response: ServerResponse
  readonly #options: ConnectionOptions
  readonly #heartbeats: Heartbeats
  readonly #closeListeners = new Set<() => void>()
  #waiting: ((drained: boolean) => void)[] = []
  #isClogged = false
  #isEnding = false
  #closed = false

  constructor(response: ServerResponse, options: ConnectionOptions) {
    this.#response = response
    this.#options = options
    this.#heartbeats = heartbeatsOf(options.clock)
    if (isOver(response)) {
      this.#closed = true
      return
    }
    if (response.headersSent) throw new Error('an event stream needs a response that has not begun')
    response.on('drain', this.#onDrain)
    response.on('close', this.#onClose)
    response.on('error', ignore)
    this.#begin()
  }

  /** Whether nothing reaches its client any more. */
  get closed(): boolean {
    return this.#closed || isOver(this.#response)
  }

  /** Calls back once, when the client has left or has been given all; at once if it has come to that. */
  onClosed(listener: () => void): void {
    if (this.#closed) listener()
    else this.#closeListeners.add(listener)
  }

  /** `true` once the client keeps up with what was written, `false` when it has left; never rejects. */
  write(frame: string): Promise<boolean> {
    if (this.closed) return Promise.resolve(false)
    this.#send(frame)
    if (!this.#isClogged) return Promise.resolve(true)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Writes the last event; `true` once all has been handed over, `false` when the client has left before. */
  end(frame: string): Promise<boolean> {
    if (this.closed) return Promise.resolve(false)
    this.#isEnding = true
    this.#stopBeating()
    // taken from the response as soon as that has finished
    const { socket } = this.#response
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      // Node finishes a response also when its connection breaks
      this.#response.end(frame, () => this.#release(socket?.destroyed !== true))
    })
  }

  /** Ends it so that it cannot look complete, with a last event where the client still reads, else by breaking off. */
  cutOff(frame: string | undefined): void {
    if (this.#closed) return
    if (frame === undefined || this.#isClogged || isOver(this.#response)) {
      // whoever keeps to the deadline before us has said the last word
      if (!this.#response.writableEnded || this.#isEnding) this.#response.destroy()
    } else void this.end(frame)
    this.#stopBeating()
    this.#release(false)
  }

  beat(): void {
    // a client that does not read needs no sign of life, and would be owed more and more of them
    if (!this.#isClogged && !this.closed && this.#response.writableLength === 0)
      this.#send(this.#options.beat())
  }

  #begin(): void {
    const response = this.#response
    response.statusCode = 200
    response.setHeader('content-type', 'text/event-stream; charset=utf-8')
    // `no-transform` also keeps compressors of this process from holding events back
    response.setHeader('cache-control', 'no-cache, no-transform')
    response.setHeader('x-accel-buffering', 'no')
    response.removeHeader('content-length')
    response.flushHeaders()
    const { retry } = this.#options
    this.#send(retry === undefined ? comment : comment + retryFrame(retry))
  }

  #send(frame: string): void {
    const response = this.#response
    if (!response.write(frame)) this.#isClogged = true
    // compression adds a `flush` of its own; the one that Node once had only prints a warning
    if (Object.hasOwn(response, 'flush') && 'flush' in response && typeof response.flush === 'function') {
      response.flush()
    }
    this.#heartbeats.restart(this, this.#options.heartbeat)
  }

  #stopBeating(): void {
    this.#heartbeats.stop(this, this.#options.heartbeat)
  }

  readonly #onDrain = (): void => {
    this.#isClogged = false
    this.#release(true)
  }

  readonly #onClose = (): void => {
    this.#closed = true
    this.#response.removeListener('drain', this.#onDrain)
    this.#response.removeListener('close', this.#onClose)
    this.#stopBeating()
    this.#release(false)
    for (const listener of this.#closeListeners) listener()
    this.#closeListeners.clear()
  }

  #release(drained: boolean): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve(drained)
  }
}

/** What a response says of a client that left is known from its `close`. */
function ignore(): void {}
