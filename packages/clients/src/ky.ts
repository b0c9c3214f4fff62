import type { Input, KyInstance, Options, ResponsePromise } from 'ky'
import type { FetchCall } from './fetch.ts'
import { KyCallUnderDeadline } from './ky-call.ts'
import { retryWithin } from './ky-retry.ts'
import {
  assertLimited,
  type ClientOptions,
  deadlineOfCall,
  isBounded,
  resolveClientOptions,
} from './outgoing.ts'

export type { ClientOptions }

/** The call a `ky` was asked for. */
export type KyCall = FetchCall

/**
 * The same ky instance, and what is extended from it, with every call under the ambient deadline or that of the signal it
 * is given, its retries and their pauses included. Each attempt is an operation in the ledger.
 *
 *     const api = attachDeadline(ky.extend({ prefixUrl: 'http://index.internal' }), { operation: 'search' })
 *
 * A call then fails with BudgetTooSmallError, before any I/O, if less than the floor is left, with OperationTimeoutError
 * after its own timeout, and with the deadline's reason once that has ended. What fails by itself fails with the error
 * that ky has for it, and UpstreamError is among its causes. ky's own `timeout` counts where it is set: its default of
 * 10 s does not under a deadline.
 * @throws TypeError that names the option which cannot be read.
 */
export function attachDeadline(instance: KyInstance, options: ClientOptions<KyCall> = {}): KyInstance {
  const resolved = resolveClientOptions(options, 'ky')
  const defaults = defaultsOf(instance)

  const governed = (call: KyMethod): KyMethod =>
    function kyUnderDeadline(input, init = {}) {
      const signal = init.signal ?? (input instanceof Request ? input.signal : undefined)
      const above = deadlineOfCall(signal)
      if (!isBounded({ deadline: above }, resolved)) return call(input, init)
      assertLimited({ deadline: above }, resolved)
      const under = new KyCallUnderDeadline({ above, signal, options })
      const { deadline } = under
      const limit =
        init.timeout ?? defaults.timeout ?? (deadline.remaining() === Infinity ? undefined : false)
      const attempt = under.attemptWith(init.fetch ?? defaults.fetch ?? globalThis.fetch, limit)
      const inTime = retryWithin(deadline, { init, defaults, floor: resolved.floor })
      return under.settling(() =>
        call(input, {
          ...init,
          ...inTime,
          ...(limit === undefined ? {} : { timeout: limit }),
          fetch: attempt,
          signal: deadline.signal,
        }),
      )
    }

  return new Proxy(instance, {
    apply: (target, _self, args: Parameters<KyMethod>) => governed(target)(...args),
    get(target, name) {
      if (name === 'extend') {
        return (...args: Parameters<KyInstance['extend']>) => attachDeadline(target.extend(...args), options)
      }
      const member: unknown = Reflect.get(target, name)
      return methods.has(name) ? governed(member as KyMethod) : member
    },
  })
}

type KyMethod = (input: Input, init?: Options) => ResponsePromise
const methods: ReadonlySet<string | symbol> = new Set(['get', 'post', 'put', 'patch', 'head', 'delete'])

/** ky shows what an instance was made with to whoever extends it. */
function defaultsOf(instance: KyInstance): Options {
  let defaults: Options = {}
  instance.extend((given) => {
    defaults = given
    return {}
  })
  return defaults
}
