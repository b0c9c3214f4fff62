import type { AxiosAdapter, AxiosInstance, InternalAxiosRequestConfig } from 'axios'
import { deadlineBehind } from '@timebudget/core'
import { type AxiosCall, axiosDispatcher } from './axios-dispatch.ts'
import { type ClientOptions, deadlineOfCall, isBounded, resolveClientOptions } from './outgoing.ts'

export type { AxiosCall, ClientOptions }

/** The adapter behind each of ours: a config that is sent again must not be governed twice. */
const adapterBehind = new WeakMap<AxiosAdapter, InternalAxiosRequestConfig['adapter']>()

/**
 * Puts every call of an axios instance under the ambient deadline, or that of the signal it is given; returns a function
 * that undoes it. Each attempt of a retrying plugin is a call of its own, with what is left by then.
 *
 *     const detach = attachDeadline(axios, { floor: '50ms' })
 *
 * A call then fails with BudgetTooSmallError before any I/O if less than the floor is left, with OperationTimeoutError
 * after its own timeout, and with the deadline's reason once that has ended. Everything else is axios's own: an
 * AxiosError, or a CanceledError if the caller's signal aborts.
 * @throws TypeError that names the option which cannot be read.
 */
export function attachDeadline(instance: AxiosInstance, options: ClientOptions<AxiosCall> = {}): () => void {
  const resolved = resolveClientOptions(options, 'axios')
  const dispatch = axiosDispatcher(instance, resolved)
  // synchronous: one that is not would make all others asynchronous
  const id = instance.interceptors.request.use(underDeadline, undefined, { synchronous: true })
  return function detachDeadline() {
    instance.interceptors.request.eject(id)
  }

  function underDeadline(config: InternalAxiosRequestConfig): InternalAxiosRequestConfig {
    const adapter = ungoverned(config.adapter)
    const signal = config.signal as AbortSignal | undefined
    const deadline = deadlineOfCall(signal)
    if (!isBounded({ deadline }, resolved)) return Object.assign(config, { adapter })
    // looking at it before and after us, axios would say 'canceled' and not why, even where the deadline has passed
    const isPutAway = signal !== undefined && (signal.aborted || deadlineBehind(signal) !== undefined)
    const governed: AxiosAdapter = (dispatched) =>
      dispatch(Object.assign(dispatched, { adapter }), { deadline, signal })
    adapterBehind.set(governed, adapter)
    return Object.assign(config, { adapter: governed, signal: isPutAway ? undefined : signal })
  }
}

function ungoverned(adapter: InternalAxiosRequestConfig['adapter']): InternalAxiosRequestConfig['adapter'] {
  return typeof adapter === 'function' && adapterBehind.has(adapter) ? adapterBehind.get(adapter) : adapter
}
