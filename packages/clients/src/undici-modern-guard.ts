import type { Dispatcher } from 'undici'
import { AttemptAnswer, type CallParts, GuardedCall } from './undici-call.ts'

type Handler = Dispatcher.DispatchHandler
type Controller = Dispatcher.DispatchController
type Headers = Parameters<NonNullable<Handler['onResponseStart']>>[2]

/** A guard of the generation that undici 7 has brought. */
export class ModernGuard extends GuardedCall implements Handler {
  readonly #inner: Handler
  /** undici's own; it makes one for each attempt. */
  #outer: Controller | undefined
  #shown: Controller | undefined

  constructor(inner: Handler, parts: CallParts) {
    super(parts)
    this.#inner = inner
  }

  protected override stop(reason: Error): void {
    this.#outer?.abort(reason)
  }

  protected override tell(reason: Error): void {
    // where undici has not begun, there is no controller yet
    this.#inner.onResponseError?.(this.#shown ?? controllerOfNothing(reason), reason)
  }

  onRequestStart(controller: Controller, context: unknown): void {
    this.#outer = controller
    this.#shown = new ShownController(controller, this)
    if (this.closedBy !== undefined) controller.abort(this.closedBy.reason)
    else this.#inner.onRequestStart?.(this.#shown, context)
  }

  onRequestUpgrade(...[controller, ...answer]: Parameters<NonNullable<Handler['onRequestUpgrade']>>): void {
    if (!this.isClosed && this.completed())
      this.#inner.onRequestUpgrade?.(this.#shown ?? controller, ...answer)
  }

  onResponseStart(controller: Controller, status: number, headers: Headers, text?: string): void {
    if (!this.isClosed) this.answered(new ModernAnswer(this.attempt, status, headers))
    if (!this.isClosed) this.#inner.onResponseStart?.(this.#shown ?? controller, status, headers, text)
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (!this.isClosed) this.#inner.onResponseData?.(this.#shown ?? controller, chunk)
  }

  onResponseEnd(controller: Controller, trailers: Headers): void {
    if (!this.isClosed && this.completed()) this.#inner.onResponseEnd?.(this.#shown ?? controller, trailers)
  }

  onResponseError(_controller: Controller, error: Error): void {
    if (!this.isClosed) this.failed(error)
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

class ModernAnswer extends AttemptAnswer<Headers> {
  protected override header(headers: Headers, name: string): string | undefined {
    return headers[name]?.toString()
  }
}

/** For a call that ends before undici has begun it. */
function controllerOfNothing(reason: Error): Controller {
  return { aborted: true, paused: false, reason, abort: ignore, pause: ignore, resume: ignore }
}

function ignore(): void {}
