// What is scarce: a model server with so many slots, each decoding for a log-normal time. `node engine-process.mjs fifo`
import { once } from 'node:events'
import { createServer } from 'node:http'
import { currentDeadline } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { DeadlineQueue } from '@timebudget/resilience'
import { serve } from '../support/worker.mjs'
import { slots } from './load-shape.mjs'

const [policy] = process.argv.slice(2)
/** Seconds of slots: all of them, those after nobody waited any more, and those for answers that came too late. */
const spent = { all: 0, unwaited: 0, missed: 0 }

const listeners = {
  deaf: (request, response) => serveInTurn(request, response, undefined),
  heeding: withDeadline((request, response) => serveInTurn(request, response, currentDeadline().signal), {
    default: '1m',
  }),
  queueing: withDeadline(serveFromQueue, { default: '1m' }),
}
const server = createServer(listeners[policy]).listen(0, '127.0.0.1')
await once(server, 'listening')
serve({ port: () => server.address().port, spent: () => spent })

const queue = new DeadlineQueue({ slots, name: 'engine', estimate: ({ estimate }) => estimate })
const line = []
let free = slots

/** First come, first served; who leaves while waiting is passed over if there is a signal to say so. */
async function serveInTurn(request, response, signal) {
  const work = workOf(request)
  if (free > 0) free -= 1
  else await new Promise((resolve) => line.push({ resolve, signal }))
  try {
    await decode(work, signal)
    if (!response.destroyed) response.end('text')
  } finally {
    nextInLine()
  }
}

function nextInLine() {
  for (let next = line.shift(); next !== undefined; next = line.shift()) {
    if (next.signal?.aborted !== true) return next.resolve()
  }
  free += 1
}

async function serveFromQueue(request, response) {
  const work = workOf(request)
  await queue.run(({ signal }) => decode(work, signal), { estimate: work.estimate })
  response.end('text')
}

/** Holds a slot for as long as it takes, or until the signal aborts; counts what of that was for nothing. */
function decode({ takes, waitedFor }, signal) {
  const startedAt = now()
  if (signal?.aborted === true) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const end = (settle) => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      count({ startedAt, endedAt: now(), waitedFor, isWhole: settle === resolve })
      settle(signal?.reason)
    }
    const onAbort = () => end(reject)
    const timer = setTimeout(() => end(resolve), takes)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

function count({ startedAt, endedAt, waitedFor, isWhole }) {
  const seconds = (endedAt - startedAt) / 1_000
  spent.all += seconds
  spent.unwaited += Math.max(0, endedAt - Math.max(startedAt, waitedFor)) / 1_000
  if (!isWhole || endedAt > waitedFor) spent.missed += seconds
}

function workOf({ headers }) {
  return {
    takes: Number(headers['x-takes']),
    estimate: Number(headers['x-estimate']),
    waitedFor: Number(headers['x-waited-for']),
  }
}

/** Milliseconds on the clock that all processes of a machine share. */
function now() {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}
