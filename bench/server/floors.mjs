import { AsyncLocalStorage } from 'node:async_hooks'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Filed } from '../support/filed.mjs'

const storage = new AsyncLocalStorage()
const stateKey = Symbol('state')

/** An async context for one request, and nothing else. */
export function withContext(store, work) {
  return storage.run(store, work)
}

/**
 * The least that reads whether a request brings a deadline, hears of its end and can stand before a late answer: one object
 * with a moment, filed by the second in which that lies, and methods that do nothing but ask it and go on. No deadline that
 * anybody could be given, no timer, no errors, no events.
 */
export function guarded(request, response) {
  const state = new State(request, response)
  request[stateKey] = state
  response[stateKey] = state
  request.emit = emitOfRequest
  response.emit = emitOfResponse
  response.writeHead = writeHead
  response.write = write
  response.end = end
  return [request, response]
}

function hasDeadline(headers) {
  for (const name in headers) if (name === 'x-request-timeout-ms') return true
  return false
}

/** Both, as everything needs them that makes a deadline known to all that a request's handlers call. */
export function guardedInContext(request, response, work) {
  guarded(request, response)
  return storage.run(request, work)
}

/** What lets middleware go on at the deadline even if the handler does not, and nothing else. */
export function raced(work) {
  return new Promise((resolve, reject) => {
    work().then(resolve, reject)
  })
}

const budget = 5_000

class State extends Filed {
  constructor(request, response) {
    super(hasDeadline(request.headers) ? 0 : budget)
    this.request = request
    this.response = response
  }

  heard(event) {
    if (event === 'finish' || event === 'close') this.over()
  }
}

function emitOfRequest(...args) {
  this[stateKey].heard(args[0])
  return Reflect.apply(IncomingMessage.prototype.emit, this, args)
}

function emitOfResponse(...args) {
  this[stateKey].heard(args[0])
  return Reflect.apply(ServerResponse.prototype.emit, this, args)
}

function writeHead(...args) {
  if (this[stateKey].reason !== undefined) return this
  return Reflect.apply(ServerResponse.prototype.writeHead, this, args)
}

function write(...args) {
  if (this[stateKey].reason !== undefined) return true
  return Reflect.apply(ServerResponse.prototype.write, this, args)
}

function end(...args) {
  if (this[stateKey].reason !== undefined) return this
  return Reflect.apply(ServerResponse.prototype.end, this, args)
}
