import { AsyncLocalStorage } from 'node:async_hooks'
import { IncomingMessage, ServerResponse } from 'node:http'

const storage = new AsyncLocalStorage()
const stateKey = Symbol('state')

/** An async context for one request, and nothing else. */
export function withContext(store, work) {
  return storage.run(store, work)
}

/**
 * The least that hears of an exchange's end and can stand before a late answer: one object, and methods that do nothing but
 * ask it and go on. No deadline, no timer.
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

class State {
  isOver = false
  deadline = undefined
  reason = undefined
  options = undefined

  constructor(request, response) {
    this.request = request
    this.response = response
  }

  isTooLate() {
    return this.reason !== undefined
  }

  heard(event) {
    if (event === 'finish') this.isOver = true
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
  if (this[stateKey].isTooLate()) return this
  return Reflect.apply(ServerResponse.prototype.writeHead, this, args)
}

function write(...args) {
  if (this[stateKey].isTooLate()) return true
  return Reflect.apply(ServerResponse.prototype.write, this, args)
}

function end(...args) {
  if (this[stateKey].isTooLate()) return this
  return Reflect.apply(ServerResponse.prototype.end, this, args)
}
