import { ClientRequest, request as httpRequest } from 'node:http'
import { Readable } from 'node:stream'
import { Filed } from '../support/filed.mjs'

const limit = 5_000

/** What tells the next service how long there is. */
function headersOf({ endsAt }) {
  const left = endsAt - performance.now()
  return {
    'x-request-deadline': String(Math.floor(Date.now() + left)),
    'x-request-timeout-ms': String(Math.floor(left)),
  }
}

/**
 * The least that a call of node:http can do which is told of a deadline and hears of its own end: two headers, one object, and
 * methods that only go on. No ledger, no errors, no floor, nothing looked up.
 */
export function leastRequest(url, options, onResponse) {
  const call = new Filed(limit)
  const sent = httpRequest(url, options, onResponse)
  const headers = headersOf(call)
  for (const name in headers) sent.setHeader(name, headers[name])
  sent[callKey] = call
  sent.emit = emit
  sent.destroy = destroy
  return sent
}

const callKey = Symbol('call')

function emit(...args) {
  if (args[0] === 'response') {
    args[1][callKey] = this[callKey]
    args[1].on('end', over)
    args[1]._destroy = destroyBody
  }
  return Reflect.apply(ClientRequest.prototype.emit, this, args)
}

function destroy(...args) {
  this[callKey].over()
  return Reflect.apply(ClientRequest.prototype.destroy, this, args)
}

function destroyBody(error, callback) {
  this[callKey].over()
  Readable.prototype._destroy.call(this, error, callback)
}

function over() {
  this[callKey].over()
}

/** The same of a call of fetch, which needs a signal to be ended by, and whose body lasts as long as the call. */
export async function leastFetch(url) {
  const call = new Filed(limit)
  const { signal } = new AbortController()
  try {
    const response = await fetch(url, { signal, headers: headersOf(call) })
    return await response.text()
  } finally {
    call.over()
  }
}

/** The least that an interceptor of undici does which wants to hear how a call goes. */
export function passingOn(dispatch) {
  return (options, handler) => dispatch(options, passing(handler))
}

/** And that tells the next service how long there is. */
export function passingOnWithHeaders(dispatch) {
  return function dispatchWithHeaders(options, handler) {
    const call = new Filed(limit)
    const headers = { ...options.headers, ...headersOf(call) }
    return dispatch({ ...options, headers }, passing(handler, call))
  }
}

/** The same for the global fetch, whose undici may be of the older generation of handlers. */
export function passOnGlobally() {
  void Response // Node loads its undici when the first of its classes is touched
  for (const key of ['undici.globalDispatcher.1', 'undici.globalDispatcher.2'].map(Symbol.for)) {
    const own = globalThis[key]
    if (own !== undefined) globalThis[key] = { dispatch: passingOnWithHeaders(own.dispatch.bind(own)) }
  }
}

/** Hears of the end, in the words of undici's generation, and goes on. */
function passing(handler, call) {
  return handler.onRequestStart === undefined
    ? new OlderPassingHandler(handler, call)
    : new PassingHandler(handler, call)
}

class PassingHandler {
  constructor(inner, call) {
    this.inner = inner
    this.call = call
  }

  onRequestStart(controller, context) {
    this.inner.onRequestStart(controller, context)
  }

  onResponseStart(controller, status, headers, text) {
    this.inner.onResponseStart?.(controller, status, headers, text)
  }

  onResponseData(controller, chunk) {
    this.inner.onResponseData?.(controller, chunk)
  }

  onResponseEnd(controller, trailers) {
    this.call?.over()
    this.inner.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller, error) {
    this.call?.over()
    this.inner.onResponseError?.(controller, error)
  }
}

class OlderPassingHandler {
  constructor(inner, call) {
    this.inner = inner
    this.call = call
  }

  onConnect(abort, context) {
    this.inner.onConnect(abort, context)
  }

  onResponseStarted() {
    this.inner.onResponseStarted?.()
  }

  onBodySent(chunk) {
    this.inner.onBodySent?.(chunk)
  }

  onHeaders(status, headers, resume, text) {
    return this.inner.onHeaders(status, headers, resume, text)
  }

  onData(chunk) {
    return this.inner.onData(chunk)
  }

  onComplete(trailers) {
    this.call?.over()
    this.inner.onComplete(trailers)
  }

  onError(error) {
    this.call?.over()
    this.inner.onError(error)
  }
}
