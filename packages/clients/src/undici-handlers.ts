import type { Dispatcher } from 'undici'
import type { Abort, GuardedCall } from './undici-call.ts'

type Handler = Dispatcher.DispatchHandler
type Controller = Dispatcher.DispatchController

/**
 * Stands between undici and whoever waits for the answer: ends the wait at the deadline, also where undici would not
 * (in a pool's queue, in a retry's backoff), and lets nothing through afterwards. undici 8 knows one generation of
 * handlers, undici 7 both, undici 6 the older one; the global fetch is of the generation of the undici within Node.
 */
export function guardHandler(inner: Handler, call: GuardedCall): Handler {
  return typeof inner.onRequestStart === 'function'
    ? new ModernGuard(inner, call)
    : new LegacyGuard(inner, call)
}

class ModernGuard implements Handler {
  readonly #inner: Handler
  readonly #call: GuardedCall
  /** undici's own; it makes one for each attempt. */
  #outer: Controller | undefined
  #shown: Controller | undefined

  constructor(inner: Handler, call: GuardedCall) {
    this.#inner = inner
    this.#call = call
    call.begin({
      stop: (reason) => this.#outer?.abort(reason),
      // where undici has not begun, there is no controller yet
      tell: (reason) => inner.onResponseError?.(this.#shown ?? controllerOfNothing(reason), reason),
    })
  }

  onRequestStart(controller: Controller, context: unknown): void {
    this.#outer = controller
    this.#shown = new ShownController(controller, this.#call)
    if (this.#call.closedBy !== undefined) controller.abort(this.#call.closedBy.reason)
    else this.#inner.onRequestStart?.(this.#shown, context)
  }

  onRequestUpgrade(...[controller, ...answer]: Parameters<NonNullable<Handler['onRequestUpgrade']>>): void {
    if (this.#call.isClosed) return
    this.#call.completed(() => this.#inner.onRequestUpgrade?.(this.#shown ?? controller, ...answer))
  }

  onResponseStart(...[controller, ...answer]: Parameters<NonNullable<Handler['onResponseStart']>>): void {
    const [status, headers] = answer
    if (!this.#call.isClosed) this.#call.answered(status, (name) => headers[name]?.toString())
    if (!this.#call.isClosed) this.#inner.onResponseStart?.(this.#shown ?? controller, ...answer)
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (!this.#call.isClosed) this.#inner.onResponseData?.(this.#shown ?? controller, chunk)
  }

  onResponseEnd(...[controller, ...trailers]: Parameters<NonNullable<Handler['onResponseEnd']>>): void {
    if (this.#call.isClosed) return
    this.#call.completed(() => this.#inner.onResponseEnd?.(this.#shown ?? controller, ...trailers))
  }

  onResponseError(_controller: Controller, error: Error): void {
    if (!this.#call.isClosed) this.#call.failed(error)
  }
}

/** undici's controller, on which we notice that who asked aborts. */
class ShownController implements Controller {
  readonly #outer: Controller
  readonly #call: GuardedCall

  constructor(outer: Controller, call: GuardedCall) {
    this.#outer = outer
    this.#call = call
  }

  get aborted(): boolean {
    return this.#outer.aborted
  }
  get paused(): boolean {
    return this.#outer.paused
  }
  get reason(): Error | null {
    return this.#outer.reason
  }
  get rawHeaders(): NonNullable<Controller['rawHeaders']> | null {
    return this.#outer.rawHeaders ?? null
  }
  get rawTrailers(): NonNullable<Controller['rawTrailers']> | null {
    return this.#outer.rawTrailers ?? null
  }
  abort(reason: Error): void {
    this.#call.abandoned(reason, () => this.#outer.abort(reason))
  }
  pause(): void {
    this.#outer.pause()
  }
  resume(): void {
    this.#outer.resume()
  }
}

class LegacyGuard implements Handler {
  readonly #inner: Handler
  readonly #call: GuardedCall
  #abort: Abort | undefined

  constructor(inner: Handler, call: GuardedCall) {
    this.#inner = inner
    this.#call = call
    call.begin({
      stop: (reason) => this.#abort?.(reason),
      tell: (reason) => inner.onError?.(reason),
    })
  }

  onConnect(abort: Abort, ...context: readonly unknown[]): void {
    this.#abort = abort
    if (this.#call.closedBy !== undefined) return abort(this.#call.closedBy.reason)
    const abandon: Abort = (reason) => this.#call.abandoned(reason, abort)
    // undici 6 hands over a context too
    Reflect.apply(this.#inner.onConnect ?? ignore, this.#inner, [abandon, ...context])
  }

  onUpgrade(...answer: Parameters<NonNullable<Handler['onUpgrade']>>): void {
    if (!this.#call.isClosed) this.#call.completed(() => this.#inner.onUpgrade?.(...answer))
  }

  onResponseStarted(): void {
    if (!this.#call.isClosed) this.#inner.onResponseStarted?.()
  }

  onHeaders(...answer: Parameters<NonNullable<Handler['onHeaders']>>): boolean {
    const [status, headers] = answer
    if (!this.#call.isClosed) this.#call.answered(status, (name) => rawHeader(headers, name))
    // what is for nobody is read on, until undici has stopped
    return this.#call.isClosed || (this.#inner.onHeaders?.(...answer) ?? true)
  }

  onData(chunk: Buffer): boolean {
    return this.#call.isClosed || (this.#inner.onData?.(chunk) ?? true)
  }

  onComplete(trailers: string[] | null): void {
    if (!this.#call.isClosed) this.#call.completed(() => this.#inner.onComplete?.(trailers))
  }

  onError(error: Error): void {
    if (!this.#call.isClosed) this.#call.failed(error)
  }

  onBodySent(chunkSize: number, totalBytesSent: number): void {
    if (!this.#call.isClosed) this.#inner.onBodySent?.(chunkSize, totalBytesSent)
  }
}

/** All values of that name, as a list. */
function rawHeader(headers: readonly (Buffer | string)[], name: string): string | undefined {
  const values: string[] = []
  for (let index = 0; index + 1 < headers.length; index += 2) {
    if (headers[index]?.toString('latin1').toLowerCase() === name) values.push(String(headers[index + 1]))
  }
  return values.length === 0 ? undefined : values.join(', ')
}

/** For a call that ends before undici has begun it. */
function controllerOfNothing(reason: Error): Controller {
  return { aborted: true, paused: false, reason, abort: ignore, pause: ignore, resume: ignore }
}

function ignore(): void {}
