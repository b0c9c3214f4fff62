import {
  type Clock,
  type Deadline,
  findTimeBudgetError,
  refuseUnknownOptions,
  UpstreamError,
} from '@timebudget/core'
import { currentCallSettings } from '../call-settings.ts'
import { limitsFor, type Profile, type ProfileChoice } from '../profiles.ts'
import { watchStream } from '../watch-stream.ts'
import { partStream, stoppableParts, untilFinish } from './ai-sdk-stream.ts'

/** What the AI SDK's middleware takes. */
export interface AiSdkMiddlewareOptions {
  /** The limits of a call, by name, as they are, or chosen for each call; all but `connect`. */
  readonly profile: ProfileChoice
  /** Own profiles by name, besides the built-in ones. */
  readonly profiles?: Readonly<Record<string, Profile>> | undefined
  /** The operation's name in the ledger; `'generate'`. */
  readonly operation?: string | undefined
  /** What the calls are for: profiles may be chosen by it. */
  readonly task?: string | undefined
  /** In place of the ambient one. */
  readonly deadline?: Deadline | undefined
  readonly clock?: Clock | undefined
}

/** What of a call's options is looked at. */
export interface AiSdkParams {
  readonly prompt: object
  readonly abortSignal?: AbortSignal | undefined
}

/** A language-model middleware of the AI SDK, of its versions 6 and 7. */
export interface AiSdkMiddleware {
  readonly specificationVersion: 'v3'
  wrapGenerate<Params extends AiSdkParams, Result>(call: {
    readonly params: Params
    readonly model: { readonly modelId: string; doGenerate(params: Params): PromiseLike<Result> }
  }): Promise<Result>
  wrapStream<Params extends AiSdkParams, Result extends { readonly stream: ReadableStream }>(
    call: AiSdkStreamCall<Params, Result>,
  ): Promise<Result>
}

/** What the AI SDK hands over of a call for a stream. */
export interface AiSdkStreamCall<Params, Result> {
  readonly params: Params
  readonly model: { readonly modelId: string; doStream(params: Params): PromiseLike<Result> }
}

const optionNames = [
  'profile',
  'profiles',
  'operation',
  'task',
  'deadline',
  'clock',
] as const satisfies (keyof AiSdkMiddlewareOptions)[]

/**
 * Puts any model of the AI SDK under the deadline and a profile's limits, whatever its provider does for a fetch. What a
 * model fails with is thrown as it is; a limit that passes, as FirstTokenTimeoutError, StreamStalledError or
 * TotalTimeoutError.
 *
 *     const model = wrapLanguageModel({ model: openai('gpt-5'), middleware: aiSdkMiddleware({ profile: 'chat' }) })
 *     const { textStream } = streamText({ model, prompt, maxRetries: 0 })
 *
 * @throws TypeError that names the option which cannot be read.
 */
export function aiSdkMiddleware(options: AiSdkMiddlewareOptions): AiSdkMiddleware {
  refuseUnknownOptions(options, optionNames)
  const { profile, profiles = {}, operation = 'generate', deadline, clock } = options
  if (profile === undefined) throw new TypeError('profile: expected the name of one, a profile or a function')
  if (typeof profile !== 'function')
    limitsFor(profile, profiles, { model: undefined, task: undefined, url: '' })
  const retries = new RetryWatch()

  const profileOf = (model: string): Profile => {
    const current = currentCallSettings()
    const call = { model, task: current?.task ?? options.task, url: '' }
    const { connect, firstToken, idleContent, idleTransport, total } = limitsFor(
      current?.profile ?? profile,
      profiles,
      call,
    )
    return { connect, firstToken, idle: { content: idleContent, transport: idleTransport }, total }
  }

  return {
    specificationVersion: 'v3',
    async wrapGenerate({ params, model }) {
      const whole = { ...profileOf(model.modelId), firstToken: Infinity }
      const controller = new AbortController()
      const parts = stoppableParts(controller, async function* () {
        yield await model.doGenerate({ ...params, abortSignal: controller.signal })
      })
      const { abortSignal: signal } = params
      const watched = watchStream(parts, whole, { operation, deadline, clock, signal })
      return retries.watch(params, async () => {
        const { value } = await watched.next()
        await watched.next()
        if (value === undefined) throw new UpstreamError(`${operation} was given no answer`)
        return value
      })
    },
    async wrapStream<Params extends AiSdkParams, Result extends { readonly stream: ReadableStream }>({
      params,
      model,
    }: AiSdkStreamCall<Params, Result>): Promise<Result> {
      const controller = new AbortController()
      const opening = new Opening<Result>()
      const parts = stoppableParts(controller, async function* () {
        const { stream } = opening.done(await model.doStream({ ...params, abortSignal: controller.signal }))
        yield* untilFinish(stream, operation)
      })
      const { abortSignal: signal } = params
      const profileHere = profileOf(model.modelId)
      const watched = watchStream(parts, profileHere, { operation, deadline, clock, signal })
      let first: Promise<IteratorResult<unknown>> | undefined = watched.next()
      first.catch(opening.failed)
      const opened = await retries.watch(params, () => opening.result)
      const next = (): Promise<IteratorResult<unknown>> => {
        const part = first ?? watched.next()
        first = undefined
        return part
      }
      const stream = partStream({
        next: () => thrownAsIs(params, next),
        leave: () => watched.return?.(),
        isStopped: () => params.abortSignal?.aborted === true,
      })
      return { ...opened, stream }
    },
  }
}

/** What comes before a stream's parts. */
class Opening<T> {
  readonly result: Promise<T>
  #resolve: (opened: T) => void = ignore
  failed: (error: unknown) => void = ignore

  constructor() {
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.failed = reject
    })
  }

  done(opened: T): T {
    this.#resolve(opened)
    return opened
  }
}

/** What the model, or whoever stopped it, threw, without what it was wrapped in on its way. */
async function thrownAsIs<T>({ abortSignal }: AiSdkParams, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (abortSignal?.aborted === true) throw abortSignal.reason
    const ours = findTimeBudgetError(error)
    throw ours?.outcome === 'upstream_error' && ours.cause !== undefined ? ours.cause : error
  }
}

/** Warns once if what has failed comes again: the AI SDK repeats a call with the very same prompt. */
class RetryWatch {
  readonly #failed = new WeakSet()
  #hasWarned = false

  async watch<T>(params: AiSdkParams, work: () => Promise<T>): Promise<T> {
    if (this.#failed.has(params.prompt) && !this.#hasWarned) {
      this.#hasWarned = true
      process.emitWarning(
        'the AI SDK retries by itself: give it maxRetries: 0, and retry above it, within the deadline',
        'TimeBudgetWarning',
      )
    }
    try {
      return await thrownAsIs(params, work)
    } catch (error) {
      this.#failed.add(params.prompt)
      throw error
    }
  }
}

function ignore(): void {}
