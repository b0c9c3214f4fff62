/* oxlint-disable typescript/prefer-readonly -- JavaScript has no readonly */
// Every call as its caller and as its server saw it, laid side by side.

/** Milliseconds within which a server must have ended what nobody waits for; generous, machines are busy. */
const patience = 4_000

/**
 * Which outcomes of the server agree with a caller's view. `none`: the server never heard of the call.
 *
 * | the caller saw | the server's outcome |
 * | --- | --- |
 * | a whole answer that names an outcome | that outcome |
 * | a whole answer below 500 without one | ok |
 * | any other whole answer | error |
 * | an event stream that ends with an `error` event | the outcome which that names |
 * | an event stream, whole by its length, with neither `done` nor `error` | never happens |
 * | a broken connection | anything but ok, or none |
 * | nothing, since it refused to call, or was refused the connection | none |
 * | nothing, since it left or its own time was up | any, or none; but ended soon after |
 */
export function agrees({ view, status, outcome }, served) {
  switch (view) {
    case 'answered':
      return served === (outcome ?? (status < 500 ? 'ok' : 'error'))
    case 'cut':
      return served === outcome
    case 'broken':
      return served !== 'ok'
    case 'refused':
    case 'unreachable':
      return served === undefined
    case 'gone':
      return true
    default:
      return false
  }
}

/** Collects what callers and servers tell, and says what does not fit. */
export class Books {
  #calls = new Map()
  #served = new Map()
  /** How often each pair of views has been seen, over all rounds. */
  pairs = new Map()

  called(call) {
    this.#calls.set(call.id, call)
  }

  started({ id, at, stalled }, by) {
    const served = this.#served.get(id)
    if (served === undefined)
      this.#served.set(id, { started: 1, finished: [], at, stalled, by, life: by.lives })
    else served.started += 1
  }

  finished({ id, ...end }) {
    this.#served.get(id)?.finished.push(end)
  }

  /** Requests that were begun by a hop which lives on, and have not ended. */
  get open() {
    return [...this.#served.values()].filter((served) => isLiving(served) && served.finished.length === 0)
      .length
  }

  /** What is wrong with a round that has come to rest; its books are closed then. */
  close({ killed }) {
    const faults = [...this.#faults(killed)]
    this.#calls.clear()
    this.#served.clear()
    return faults
  }

  *#faults(killed) {
    for (const [id, served] of this.#served) {
      if (!isLiving(served)) continue
      if (served.started !== 1) yield `${id} began ${served.started} times`
      if (served.finished.length !== 1) yield `${id} had ${served.finished.length} outcomes`
    }
    for (const [id, call] of this.#calls) {
      const served = this.#served.get(id)
      const end = served?.finished[0]
      this.#count(call, end?.outcome)
      // what a killed process has not told any more is lost with it
      const isLost = end === undefined && killed && (served === undefined || !isLiving(served))
      if (!isLost && !agrees(call, end?.outcome)) {
        yield `${id} by ${call.client}: ${JSON.stringify(call)} against ${JSON.stringify(served ?? null)}`
      }
      // one that its caller had left before it was read counts from then on
      const late =
        end === undefined ? 0 : end.at - Math.max(call.at, served.at) - (end.stalled - served.stalled)
      if (late > patience) {
        yield `${id} went on for ${Math.round(late)} ms: ${JSON.stringify(call)} against ${JSON.stringify(end)}`
      }
    }
  }

  #count({ view, status, outcome }, served = 'none') {
    const seen = view === 'answered' ? `${status}${outcome === undefined ? '' : ` ${outcome}`}` : view
    const pair = `${seen} / ${served}`
    this.pairs.set(pair, (this.pairs.get(pair) ?? 0) + 1)
  }
}

function isLiving({ by, life }) {
  return by.lives === life
}
