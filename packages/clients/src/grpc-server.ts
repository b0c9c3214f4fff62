import { Metadata, ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js'
import { type Deadline, isOutcome, type TimeBudgetError } from '@timebudget/core'
import {
  type CallServerOptions,
  OpenCall,
  resolveCallOptions,
  type ResolvedCallOptions,
} from '@timebudget/core/server'
import { endOf, takeOverTimer } from './grpc-base-call.ts'
import { arrivalOf, textOf } from './grpc-metadata.ts'
import { statusOf } from './grpc-status.ts'
import { outcomeOfStatus } from './rpc-status.ts'

export type { CallServerOptions }

type ServerCall = Parameters<ServerInterceptor>[1]
type ServerListener = Parameters<ServerCall['start']>[0]
type ServerStatus = Parameters<ServerCall['sendStatus']>[0]

const invalidArgument = 3

const governedCalls = new WeakMap<object, GovernedServerCall>()

/** The deadline of a call that a handler has got, without any async context. */
export function deadlineFromCall({ metadata }: { readonly metadata: object }): Deadline | undefined {
  return governedCalls.get(metadata)?.deadline
}

/**
 * Puts every call of a grpc-js server, of all four kinds, under its deadline: one that has passed on arrival reaches no
 * handler, and at the deadline the caller gets DEADLINE_EXCEEDED even if the handler hangs.
 *
 *     new Server({ interceptors: [deadlineServerInterceptor({ default: '3s' })] })
 *
 * @throws TypeError that names the option which cannot be read.
 */
export function deadlineServerInterceptor(options?: CallServerOptions): ServerInterceptor {
  const resolved = resolveCallOptions(options)
  return function interceptUnderDeadline({ path }, call) {
    return new GovernedServerCall(call, { path, options: resolved })
  }
}

/** The governed call behind a handler's. */
export function governedCall({ metadata }: { readonly metadata: object }): GovernedServerCall | undefined {
  return governedCalls.get(metadata)
}

interface Governing {
  readonly path: string
  readonly options: ResolvedCallOptions
}

/** Stands between grpc-js and the handler: after the call's end nothing of the handler's gets through. */
export class GovernedServerCall extends ServerInterceptingCall {
  readonly #inner: ServerCall
  readonly #governing: Governing
  #open: OpenCall | undefined

  constructor(inner: ServerCall, governing: Governing) {
    super(inner)
    this.#inner = inner
    this.#governing = governing
    takeOverTimer(inner)
  }

  get deadline(): Deadline | undefined {
    return this.#open?.deadline
  }

  /** The call under its deadline, once its metadata is there. */
  get open(): OpenCall | undefined {
    return this.#open
  }

  /** Puts the call under its deadline; a call that is over by then reaches no handler. */
  begin(metadata: Metadata): OpenCall {
    const { path, options } = this.#governing
    const open = new OpenCall({ path, ...arrivalOf(this.#inner, metadata, options) }, options)
    this.#open = open
    governedCalls.set(metadata, this)
    open.begin((reason) => this.#answer(reason))
    const { malformedHeader } = open
    if (malformedHeader !== undefined && open.finish('ok')) {
      this.#inner.sendStatus({ code: invalidArgument, details: `${malformedHeader} cannot be read` })
    }
    return open
  }

  override start(listener: ServerListener): void {
    this.#inner.start({
      onReceiveMetadata: (metadata) => {
        const open = this.begin(metadata)
        if (!open.isOver()) open.run(() => listener.onReceiveMetadata(metadata))
      },
      onReceiveMessage: (message) => this.#pass(() => listener.onReceiveMessage(message)),
      onReceiveHalfClose: () => this.#pass(() => listener.onReceiveHalfClose()),
      onCancel: () => {
        this.closed()
        const tell = (): void => listener.onCancel()
        if (this.#open === undefined) tell()
        else this.#open.run(tell)
      },
    })
  }

  override sendMetadata(metadata: Metadata): void {
    if (this.#open?.endIfLate() !== true) this.#inner.sendMetadata(metadata)
  }

  override sendMessage(message: unknown, callback: () => void): void {
    if (this.#open?.endIfLate() !== true) this.#inner.sendMessage(message, callback)
    else process.nextTick(callback)
  }

  override sendStatus(status: ServerStatus): void {
    const metadata = this.finish(status.code, status.metadata)
    if (metadata !== undefined) this.#inner.sendStatus({ ...status, metadata })
  }

  /** The handler's status ends the call: what to send with it, `undefined` if something else has ended it. */
  finish(code: number, trailers: Metadata | null | undefined): Metadata | undefined {
    const said = textOf(trailers, 'x-deadline-outcome')
    const serverTiming = this.#open?.serverTiming
    if (this.#open?.finish(isOutcome(said) ? said : outcomeOfStatus(code)) === false) return undefined
    const metadata = trailers?.clone() ?? new Metadata()
    // what a peer behind has reported stands in the ledger
    metadata.remove('server-timing')
    if (serverTiming !== undefined) metadata.set('server-timing', serverTiming)
    return metadata
  }

  /** The call is over for grpc-js, for whatever reason. */
  closed(): void {
    const open = this.#open
    if (open === undefined || open.isOver()) return
    const end = endOf(this.#inner)
    if (end === 'answered') open.finish('error')
    else open.clientGone(end)
  }

  #pass(event: () => void): void {
    const open = this.#open
    if (open === undefined) event()
    else if (!open.isOver()) open.run(event)
  }

  #answer(reason: TimeBudgetError): void {
    const { code, details, metadata } = statusOf(reason)
    const serverTiming = this.#open?.serverTiming
    if (serverTiming !== undefined) metadata.set('server-timing', serverTiming)
    this.#inner.sendStatus({ code, details, metadata })
  }
}
