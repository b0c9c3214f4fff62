// The pieces by themselves, and a million deadlines at once. Needs `--expose-gc`.
import { Deadline, operation } from '@timebudget/core'
import { decodeDeadline, defaultAccept, encodeDeadline, PeerClock } from '@timebudget/core/wire'
// what a server arms its deadlines with is nothing for users
import { internals } from '../../packages/core/dist/deadline.js'
import { serve } from '../support/worker.mjs'

const budget = 5_000
const watcher = { isOver: () => false, deadlineEnded() {} }
const parent = Deadline.after('1h')
const headers = {
  host: 'a',
  'x-request-deadline': String(Date.now() + 60_000),
  'x-request-timeout-ms': '60000',
}
const peer = new PeerClock()

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
  'operation()': async (count) => {
    const request = Deadline.after('1h')
    for (let index = 0; index < count; index += 1) await operation('x', { deadline: request }, work)
    request.settle()
  },
  'the same work alone': async (count) => {
    for (let index = 0; index < count; index += 1) await work()
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

/** Nanoseconds of CPU for each. */
async function timed({ name, count }) {
  globalThis.gc()
  const before = process.cpuUsage()
  await things[name](count)
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1_000) / count
}

/** So many deadlines, armed and all different: what each takes, and what one more costs to add and to settle. */
function live({ count }) {
  const held = Array.from({ length: count })
  collect()
  const heapBefore = process.memoryUsage().heapUsed
  for (let index = 0; index < count; index += 1) held[index] = armed(index)
  collect()
  const bytes = (process.memoryUsage().heapUsed - heapBefore) / count
  const gcStarted = performance.now()
  globalThis.gc()
  const gc = performance.now() - gcStarted
  const turns = 50_000
  const began = process.cpuUsage()
  for (let index = 0; index < turns; index += 1) {
    const at = (index * 7_919) % count
    held[at].settle()
    held[at] = armed(index)
  }
  const { user, system } = process.cpuUsage(began)
  for (const deadline of held) deadline.settle()
  return { bytes, gc, cost: ((user + system) * 1_000) / turns }
}

/** Between one and eleven minutes ahead. */
function armed(index) {
  const deadline = Deadline.after(60_000 + ((index * 7_919) % 600_000))
  internals.watch(deadline, watcher, { hold: false })
  return deadline
}

function collect() {
  for (let round = 0; round < 3; round += 1) globalThis.gc()
}

serve({ names: () => Object.keys(things), timed, live })
