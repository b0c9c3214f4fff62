// The pieces by themselves, and a million deadlines at once. Needs `--expose-gc`.
import { AsyncLocalStorage } from 'node:async_hooks'
import { Deadline, operation, startOperation } from '@timebudget/core'
import { decodeDeadline, defaultAccept, encodeDeadline, PeerClock } from '@timebudget/core/wire'
// what a server arms its deadlines with is nothing for users
import { internals } from '../../packages/core/dist/deadline.js'
import { serve } from '../support/worker.mjs'
import { LikeDeadline } from './floors.mjs'

const budget = 5_000
const watcher = { isOver: () => false, deadlineEnded() {} }
const parent = Deadline.after('1h')
const headers = {
  host: 'a',
  'x-request-deadline': String(Date.now() + 60_000),
  'x-request-timeout-ms': '60000',
}
const peer = new PeerClock()
const storage = new AsyncLocalStorage()
const stores = [{}, {}]

// A hidden class dies with the last object of it, and with it all that was compiled for it: without this, and with the gc()
// before each measurement, half of every figure were compiling. On a server there are always others.
globalThis.others = [
  startOperation('another', { deadline: parent, timeout: '30m' }),
  new LikeDeadline(performance.now(), budget),
]

/** One thing done `count` times; asynchronous things are awaited one after another. */
const things = {
  'make and settle': (count) => {
    for (let index = 0; index < count; index += 1) Deadline.after(budget).settle()
  },
  'make, arm and settle': (count) => {
    for (let index = 0; index < count; index += 1) {
      const deadline = Deadline.after(budget)
      internals.watch(deadline, watcher, { hold: false })
      deadline.settle()
    }
  },
  'make, ask for its signal and settle': (count) => {
    for (let index = 0; index < count; index += 1) {
      const deadline = Deadline.after(budget)
      if (deadline.signal.aborted) throw new Error('too early')
      deadline.settle()
    }
  },
  'AbortController and setTimeout': (count) => {
    for (let index = 0; index < count; index += 1) {
      const controller = new AbortController()
      const timer = setTimeout(() => controller.abort(), budget)
      if (controller.signal.aborted) throw new Error('too early')
      clearTimeout(timer)
    }
  },
  'AbortSignal.timeout': (count) => {
    for (let index = 0; index < count; index += 1) AbortSignal.timeout(budget)
  },
  'make a child and settle it': (count) => {
    for (let index = 0; index < count; index += 1) parent.child({ timeout: budget }).settle()
  },
  'startOperation() and end()': (count) => {
    const request = Deadline.after('1h')
    for (let index = 0; index < count; index += 1) startOperation('x', { deadline: request }).end()
    request.settle()
  },
  'operation()': async (count) => {
    const request = Deadline.after('1h')
    for (let index = 0; index < count; index += 1) await operation('x', { deadline: request }, work)
    request.settle()
  },
  'the same work alone': async (count) => {
    for (let index = 0; index < count; index += 1) await work()
  },
  'the same work in a promise and AsyncLocalStorage.run': async (count) => {
    for (let index = 0; index < count; index += 1) await inPromise(stores[index % 2])
  },
  'read the clock': (count) => {
    let sum = 0
    for (let index = 0; index < count; index += 1) sum += performance.now()
    if (sum === 0) throw new Error('no clock')
  },
  'decode both headers': (count) => {
    const now = Date.now()
    for (let index = 0; index < count; index += 1) {
      if (decodeDeadline(headers, defaultAccept, now, { skewTolerance: 50, peer }).deadline === undefined)
        throw new Error()
    }
  },
  'encode both headers': (count) => {
    for (let index = 0; index < count; index += 1) encodeDeadline(parent)
  },
}

async function work() {
  return 1
}

/** The least that an operation can do: a promise that it can end itself, and an async context for the work. */
function inPromise(store) {
  return new Promise((resolve, reject) => {
    storage.run(store, work).then(
      (value) => resolve(value),
      (error) => reject(error),
    )
  })
}

/** Nanoseconds of CPU for each. */
async function timed({ name, count }) {
  globalThis.gc()
  const before = process.cpuUsage()
  await things[name](count)
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1_000) / count
}

/** So many, all different: what each takes, and what one more costs to add in place of another. */
function live({ count, kind }) {
  const { make, end } = kinds[kind]
  const held = Array.from({ length: count })
  collect()
  const heapBefore = heldBytes()
  for (let index = 0; index < count; index += 1) held[index] = make(index)
  collect()
  const bytes = (heldBytes() - heapBefore) / count
  const gcStarted = performance.now()
  globalThis.gc()
  const gc = performance.now() - gcStarted
  // the first turns warm up, and each of the others is long enough for several of the garbage collector's own
  const cost = Math.min(...[50_000, 200_000, 200_000].map((turns) => turnsOf(held, { make, end, turns })))
  for (const one of held) end(one)
  return { bytes, gc, cost }
}

/** Nanoseconds to replace one. */
function turnsOf(held, { make, end, turns }) {
  const began = process.cpuUsage()
  for (let index = 0; index < turns; index += 1) {
    const at = (index * 7_919) % held.length
    end(held[at])
    held[at] = make(index)
  }
  const { user, system } = process.cpuUsage(began)
  return ((user + system) * 1_000) / turns
}

const kinds = {
  /** Between one and eleven minutes ahead. */
  deadlines: {
    make(index) {
      const deadline = Deadline.after(60_000 + ((index * 7_919) % 600_000))
      internals.watch(deadline, watcher, { hold: false })
      return deadline
    },
    end: (deadline) => deadline.settle(),
  },
  /**
   * What V8 and the processor's caches cost by themselves: objects of that size, in lists by the moment of each, as all must lie
   * that are to be ended in order.
   */
  objects: {
    make(index) {
      const object = new LikeDeadline(performance.now(), 60_000 + ((index * 7_919) % 600_000))
      object.file()
      return object
    },
    end: (object) => object.takeOut(),
  },
}

/** Typed arrays lie beside the heap. */
function heldBytes() {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

function collect() {
  for (let round = 0; round < 3; round += 1) globalThis.gc()
}

serve({ names: () => Object.keys(things), timed, live })
