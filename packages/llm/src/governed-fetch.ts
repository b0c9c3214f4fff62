import { type Fetch, wrapFetch } from '@timebudget/clients/fetch'
import { type Clock, currentDeadline, type Floor, refuseUnknownOptions, systemClock } from '@timebudget/core'
import { type Asked, readAsked } from './asked.ts'
import type { LlmCall } from './call-record.ts'
import { type CallSettings, currentCallSettings } from './call-settings.ts'
import { type ConnectOptions, ModelConnector } from './connector.ts'
import { governAnswer } from './governed-answer.ts'
import { ModelCall } from './model-call.ts'
import { limitsFor, type Profile, type ProfileChoice } from './profiles.ts'
import { plainRequest } from './plain-request.ts'
import { SdkRetryGuard } from './sdk-retry.ts'

type ClientFetchOptions = NonNullable<Parameters<typeof wrapFetch>[1]>

/** What `governedFetch` takes. */
export interface GovernedFetchOptions {
  /** The limits of a call, by name, as they are, or chosen for each call. */
  readonly profile: ProfileChoice
  /** Own profiles by name, besides the built-in ones; read at each call, so that they may be changed. */
  readonly profiles?: Readonly<Record<string, Profile>> | undefined
  /** The operation's name in the ledger; `'generate'`. */
  readonly operation?: string | undefined
  /** What the calls are for: profiles may be chosen by it. */
  readonly task?: string | undefined
  /** Whose calls they are, for what they cost. */
  readonly feature?: string | undefined
  readonly tenant?: string | undefined
  /** Told what became of each call, once. */
  readonly onCall?: ((call: LlmCall) => void) | undefined
  /** Makes the calls in place of our own connections; `connect` is then not told apart. */
  readonly fetch?: Fetch | undefined
  /** Certificates and the like for our own connections. */
  readonly connect?: ConnectOptions | undefined
  /**
   * Whether the provider stops charging when we leave; `true`. If not, an answer that nobody waits for is read on for at
   * most 5 s, only to learn what it has cost.
   */
  readonly cancelStopsBilling?: boolean | undefined
  /** A call is not begun with less than this left; 0. */
  readonly floor?: Floor | undefined
  /** Which hosts get the deadline in headers; all. */
  readonly propagateTo?: ClientFetchOptions['propagateTo']
  /** Whose Server-Timing is read into the ledger; private addresses and loopback. */
  readonly trust?: ClientFetchOptions['trust']
  readonly clock?: Clock | undefined
}

const optionNames = [
  'profile',
  'profiles',
  'operation',
  'task',
  'feature',
  'tenant',
  'onCall',
  'fetch',
  'connect',
  'cancelStopsBilling',
  'floor',
  'propagateTo',
  'trust',
  'clock',
] as const satisfies (keyof GovernedFetchOptions)[]

/** Milliseconds for which an answer that is paid for anyhow is read on. */
const drainLimit = 5_000

const callKey: unique symbol = Symbol('timebudget.llm.call')
type CallInit = RequestInit & { [callKey]?: ModelCall }

/**
 * A fetch for an SDK, whose calls keep to a profile's four limits and to the deadline, whichever ends first.
 *
 *     const llmFetch = governedFetch({ profile: 'chat' })
 *     const client = new OpenAI({ fetch: llmFetch, maxRetries: 0 })
 *
 * It throws, or its body fails with, ConnectTimeoutError, FirstTokenTimeoutError, StreamStalledError, TotalTimeoutError,
 * UpstreamError for an answer that fails or is not all there, or the deadline's reason. What became of a call is in its
 * record, whatever the SDK makes of the error. A call for no stream has no first token: only `connect`, `total`, and, once
 * its body has begun, `idle` limit it.
 * @throws TypeError that names the option which cannot be read.
 */
export function governedFetch(options: GovernedFetchOptions): Fetch {
  refuseUnknownOptions(options, optionNames)
  const { profile, profiles = {}, operation = 'generate', clock = systemClock, floor } = options
  if (profile === undefined) throw new TypeError('profile: expected the name of one, a profile or a function')
  for (const name of Object.keys(profiles)) limitsFor(name, profiles, unknownCall)
  if (typeof profile !== 'function') limitsFor(profile, profiles, unknownCall)
  const send = sender(options, clock)
  const retries = new SdkRetryGuard()

  const fetchUnderDeadline = wrapFetch(
    async function fetchModel(input, { [callKey]: call, ...init }: CallInit = {}): Promise<Response> {
      if (call === undefined || !init.signal) return send(undefined, input, init)
      call.sent(init.signal)
      try {
        return governAnswer(await send(call, input, { ...init, signal: call.upstreamSignal }), {
          call,
          clock,
        })
      } catch (error) {
        throw await call.broken(error)
      }
    },
    // endless, so that calls under no deadline stand in a ledger of their own and are told of as well
    { operation, timeout: Infinity, floor, propagateTo: options.propagateTo, trust: options.trust },
  )

  return async function fetchGoverned(input, givenInit) {
    const { url, init } = await plainRequest(input, givenInit)
    const settings = settingsFor(options)
    const { idempotencyKey } = settings
    if (idempotencyKey !== undefined && !init.headers.has(idempotencyHeader))
      init.headers.set(idempotencyHeader, idempotencyKey)
    const sdkRetry = retries.isRetry(init.headers)
    const call = openCall({ asked: readAsked(url, init.body), options, settings, clock, sdkRetry })
    if (sdkRetry) return retries.refuse(call)
    try {
      const governed: CallInit = { ...init, [callKey]: call }
      const response = await fetchUnderDeadline(url, governed)
      if (!call.isAnswered) {
        // a redirect that leads nowhere
        call.answered(response)
        call.completed()
      }
      return response
    } catch (error) {
      call.refused(error, { byCaller: init.signal?.aborted === true })
      throw error
    }
  }
}

const idempotencyHeader = 'idempotency-key'
const unknownCall = { model: undefined, task: undefined, url: '' }

type Send = (call: ModelCall | undefined, ...request: Parameters<Fetch>) => Promise<Response>

function sender({ fetch, connect = {} }: GovernedFetchOptions, clock: Clock): Send {
  if (fetch !== undefined) {
    if (typeof fetch !== 'function') throw new TypeError('fetch: expected a function')
    return (_call, input, init) => fetch(input, init)
  }
  const connector = new ModelConnector(connect, clock)
  return (call, input, init) => connector.fetch(call ?? noWatcher, input, init)
}

const noWatcher = { connecting: (): void => undefined, connected: (): void => undefined }

/** What the code around a call knows of it goes before what its fetch was made with. */
function settingsFor(options: GovernedFetchOptions): CallSettings & Pick<GovernedFetchOptions, 'profile'> {
  const current = currentCallSettings()
  return {
    profile: current?.profile ?? options.profile,
    task: current?.task ?? options.task,
    feature: current?.feature ?? options.feature,
    tenant: current?.tenant ?? options.tenant,
    idempotencyKey: current?.idempotencyKey,
    onCall(call) {
      for (const listener of [options.onCall, current?.onCall]) tell(listener, call)
    },
  }
}

/** Who wants to know of a call cannot hurt it. */
function tell(listener: ((call: LlmCall) => void) | undefined, call: LlmCall): void {
  try {
    listener?.(call)
  } catch (error) {
    process.emitWarning(`onCall failed: ${String(error)}`, 'TimeBudgetWarning')
  }
}

function openCall({
  asked,
  options,
  settings,
  clock,
  sdkRetry,
}: {
  readonly asked: Asked
  readonly options: GovernedFetchOptions
  readonly settings: ReturnType<typeof settingsFor>
  readonly clock: Clock
  readonly sdkRetry: boolean
}): ModelCall {
  const { profile, task, feature, tenant, onCall = (): void => undefined } = settings
  const call = { model: asked.model, task, url: asked.url.href }
  return new ModelCall({
    asked,
    limits: limitsFor(profile, options.profiles ?? {}, call),
    operation: options.operation ?? 'generate',
    task,
    feature,
    tenant,
    clock,
    sdkRetry,
    onCall,
    attempt: currentDeadline()?.attempt ?? 1,
    watchesConnections: options.fetch === undefined,
    drain: options.cancelStopsBilling === false ? drainLimit : 0,
  })
}
