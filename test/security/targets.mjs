// Everything that reads what a stranger wrote, one function each: it takes a text, and throws if what must hold does not.
import assert from 'node:assert/strict'
import { context, propagation } from '@opentelemetry/api'
import { Deadline } from '@timebudget/core'
import { codecs, decodeAttempt, decodeDeadline, parseServerTiming, PeerClock } from '@timebudget/core/wire'
import { resolveServerOptions } from '@timebudget/core/server'
import { budgetBaggageIn, DeadlinePropagator, deadlineIn } from '@timebudget/otel'
import { memoryResume, resumeStream, stopStream } from '@timebudget/sse'

/** What a package does not export is reached by its file. */
const inside = (path) => import(new URL(`../../packages/${path}`, import.meta.url).href)
const { readArrival } = await inside('core/dist/server/arrival.js')
const { retryAfterOf } = await inside('llm/dist/retry-after.js')
const pushback = await inside('resilience/dist/pushback-values.js')
const { readEvents } = await inside('sse/dist/browser/read-events.js')
const { withoutBudgetBaggage } = await inside('otel/dist/budget-baggage.js')
const { baggageHeader } = await inside('otel/dist/w3c-baggage.js')

const now = 1_767_225_600_000
const names = Object.keys(codecs)
const known = ['x-request-timeout-ms', '1000']

const codecTargets = Object.values(codecs).map((codec) => ({
  name: codec.name,
  seeds: ['1000', '0', '1767225601000', '5S', 'wait=3', '0.25', '1, 2'],
  check(text) {
    const read = codec.parse(text)
    assert(read === undefined || read >= 0, `read as ${read}`)
    // whatever stands beside a deadline, nobody gets more time by it
    const { deadline, malformed } = decodeDeadline(headersOf(known, [codec.header, text]), names, now, {
      peer: new PeerClock(),
    })
    assert(codec.header === known[0] || deadline.remaining <= 1_000, `extended to ${deadline?.remaining}`)
    for (const { value } of malformed) assert(value.length <= 64)
  },
}))

function headersOf(...pairs) {
  return Object.fromEntries(pairs)
}

const server = { ...resolveServerOptions({ default: '2s', max: '5s', accept: names }), trust: () => 'clamp' }

const arrivals = {
  name: 'a whole request',
  seeds: [
    'x-request-timeout-ms: 100\nx-request-deadline: 1767225600100',
    'grpc-timeout: 99999999H',
    '__proto__: 1',
  ],
  check(text) {
    const lines = text.split('\n').slice(0, 64)
    const headers = Object.fromEntries(
      lines.map((line) => line.split(': ', 2)).filter(([name]) => name !== ''),
    )
    const { deadline } = readArrival({ headers, socket: { remoteAddress: '10.0.0.1' } }, server)
    assert(deadline.budget >= 0 && deadline.budget <= 5_000, `a budget of ${deadline.budget}`)
    assert(deadline.attempt >= 1 && deadline.attempt <= 1_000)
  },
}

const attempts = {
  name: 'x-request-attempt',
  seeds: ['2', '1000', '1, 2', '9999'],
  check(text) {
    for (const value of [text, [text, text], text.split('')]) {
      const attempt = decodeAttempt({ 'x-request-attempt': value })
      assert(Number.isInteger(attempt) && attempt >= 1 && attempt <= 1_000, `attempt ${attempt}`)
    }
  },
}

const timings = {
  name: 'server-timing',
  seeds: ['retrieve;dur=12.3;desc="ok";start=0.4, generate.rerank;dur=1', 'a;desc="\\"', '__proto__;dur=1e3'],
  check(text) {
    const reports = parseServerTiming(text)
    assert(reports.length <= 64)
    for (const { path, start, spent } of reports) {
      assert(path.length > 0 && path.length <= 128)
      assert(
        start >= 0 && start <= 86_400_000 && (spent === undefined || (spent >= 0 && spent <= 86_400_000)),
      )
    }
    const deadline = Deadline.after(1_000)
    const entry = deadline.ledger.open({
      name: 'call',
      parent: undefined,
      remaining: 1,
      granted: 1,
      floor: 0,
      reserve: 0,
    })
    deadline.ledger.addPeer(entry, reports)
    assert(deadline.remaining() <= 1_000)
  },
}

const retryAfters = Object.entries({
  'retry-after': (text) => pushback.readRetryAfter(text, now),
  'retry-after-ms': (text) => pushback.readMilliseconds(text, now),
  'x-ratelimit-reset': (text) => pushback.readReset(text, now),
  'grpc-retry-pushback-ms': (text) => pushback.readGrpcPushback(text, now),
  // no other text could be in a Headers
  'retry-after for models': (text) =>
    isHeader(text) ? retryAfterOf(new Headers({ 'retry-after': text }), now) : undefined,
}).map(([name, read]) => ({
  name,
  seeds: [
    '3',
    '1.5',
    '6m0s',
    '120ms',
    'Wed, 21 Oct 2026 07:28:00 GMT',
    'Sunday, 06-Nov-94 08:49:37 GMT',
    '1767225601',
  ],
  check(text) {
    const delay = read(text)
    assert(delay === undefined || delay >= 0, `wait for ${delay}`)
  },
}))

function isHeader(text) {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(text)
}

const propagator = new DeadlinePropagator()
const root = context.active()

const baggage = {
  name: 'baggage',
  seeds: [
    'deadline.total_ms=3000,deadline.origin=gateway,deadline.hop=2',
    'a=%20;p=1',
    '__proto__=1,constructor=2',
  ],
  check(text) {
    const carrier = { baggage: text, 'x-request-timeout-ms': '1000' }
    const getter = {
      keys: Object.keys,
      get: (from, key) => (Object.hasOwn(from, key) ? from[key] : undefined),
    }
    const read = baggageHeader.extract(root, carrier, getter)
    const { totalMs, origin, hop } = budgetBaggageIn(read)
    assert(totalMs === undefined || (Number.isInteger(totalMs) && totalMs >= 0))
    assert(hop === undefined || (Number.isInteger(hop) && hop >= 0 && hop < 1_000))
    assert(origin === undefined || origin.length <= 128)
    assert(budgetBaggageIn(withoutBudgetBaggage(read)).origin === undefined)
    const written = {}
    baggageHeader.inject(read, written, { set: (to, key, value) => (to[key] = value) })
    assert((written.baggage ?? '').length <= 8_192)
    assert(isHeader(written.baggage ?? ''), 'a header that cannot be sent')
    const extracted = propagator.extract(propagation.deleteBaggage(read), carrier, getter)
    assert((deadlineIn(extracted)?.remaining() ?? 0) <= 1_000)
  },
}

const events = {
  name: 'an event stream',
  seeds: [
    'event: token\ndata: {"text":"a"}\nid: 3\n\n',
    ': beat\n\n',
    'data: a\r\ndata: b\r\r',
    'retry: 9\n\n',
  ],
  async check(text) {
    const bytes = new TextEncoder().encode(text)
    const size = Math.max(7, bytes.length >> 9)
    let index = 0
    const body = new ReadableStream({
      pull(controller) {
        if (index >= bytes.length) return controller.close()
        controller.enqueue(bytes.subarray(index, (index += size)))
      },
    })
    await readEvents(body, {
      onBytes() {},
      onEvent: ({ data }) => assert.equal(typeof data, 'string') === undefined,
    })
  },
}

const store = memoryResume()

const resumes = {
  name: 'a stream taken up again',
  seeds: ['?stream=abc\n3', '?stream=__proto__\n', '?stream=%E0%A4%A\n-1', '\n999999999999999'],
  async check(text) {
    const [url = '', after] = text.split('\n', 2)
    for (const answerTo of [resumeStream, stopStream]) {
      const response = new FakeResponse({ url, headers: { 'last-event-id': after } })
      assert.equal(await answerTo(response, store), false)
      assert([410, 404].includes(response.statusCode), `answered ${response.statusCode}`)
    }
  },
}

class FakeResponse {
  statusCode = 200
  headersSent = false
  writableEnded = false
  destroyed = false

  constructor(req) {
    this.req = req
  }

  setHeader() {}

  writeHead() {}

  end() {
    this.headersSent = this.writableEnded = true
  }
}

export const targets = [
  ...codecTargets,
  arrivals,
  attempts,
  timings,
  ...retryAfters,
  baggage,
  events,
  resumes,
]
