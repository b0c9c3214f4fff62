/** A line to write, and a comment that can stand behind it or, where that is too long, above it. */
export interface CodeLine {
  readonly line: string
  readonly note?: string
}

/** What to do about something that does not hold. */
export interface Advice {
  readonly say: string
  /** Lines to write, or settings to change. */
  readonly code: readonly CodeLine[]
  /** The page of the repository, and its chapter, where there is more to read. */
  readonly more: string
}

/** What there is advice for. */
export type AdviceName =
  | 'notRead'
  | 'ignored'
  | 'onlyOneRead'
  | 'outcomeLost'
  | 'late'
  | 'doesNotStop'
  | 'notPassedOn'
  | 'leaf'
  | 'malformed'
  | 'overflow'
  | 'noMaximum'
  | 'notEarliest'
  | 'clock'

const install: readonly CodeLine[] = [
  { line: "import { deadline } from '@timebudget/express'", note: '// or koa, fastify' },
  { line: "app.use(deadline({ default: '5s', max: '60s' }))", note: '// before all routes' },
  { line: "await app.register(deadline, { default: '5s' })", note: '// Fastify' },
]

const callOut: readonly CodeLine[] = [
  {
    line: "import { fetch } from '@timebudget/clients/fetch'",
    note: '// or undici, axios, got, pg, redis, ...',
  },
  { line: "await fetch('http://index.internal/search')", note: '// carries what is left, ends with it' },
]

/** Every advice by its name. */
export const everyAdvice: Readonly<Record<AdviceName, Advice>> = {
  notRead: {
    say: "Nothing reads the deadline, or a proxy takes it off. Put deadline() before all routes, and let the proxy pass X-Request-Deadline and X-Request-Timeout-Ms. At a public edge with trust: 'ignore' this is as it should be: examine a service behind it.",
    code: install,
    more: 'docs/cli.md#reads-the-deadline',
  },
  ignored: {
    say: "It keeps to deadlines of its own, and to none that its caller sends. At a public edge that is right (trust: 'ignore'): examine a service behind it, from where its callers are. Elsewhere let its callers be trusted, and proxies pass X-Request-Deadline and X-Request-Timeout-Ms.",
    code: [
      { line: 'timebudget doctor http://search.internal/', note: '# a service behind it' },
      { line: 'app.use(deadline())', note: "// no trust: 'ignore', where callers are your own" },
    ],
    more: 'docs/cli.md#reads-the-deadline',
  },
  onlyOneRead: {
    say: 'Only one header of the pair counts. A proxy takes the other one off, or accept leaves it out.',
    code: [{ line: "app.use(deadline({ accept: ['x-request-deadline', 'x-request-timeout-ms'] }))" }],
    more: 'docs/cli.md#reads-the-deadline',
  },
  outcomeLost: {
    say: 'The 504 does not say why, so its callers cannot tell it from any other 504 and may retry for nothing. An error handler of yours or a proxy answers in place of the service.',
    code: [
      { line: 'app.use(deadlineErrors())', note: '// Express: after all routes' },
      { line: 'proxy_intercept_errors off;', note: '# nginx' },
    ],
    more: 'docs/cli.md#answers-504-by-the-deadline',
  },
  late: {
    say: "The answer comes after the deadline, to somebody who has left. deadline() answers in time whatever the handler does, unless it is told late: 'send', or the event loop is blocked.",
    code: install,
    more: 'docs/cli.md#answers-504-by-the-deadline',
  },
  doesNotStop: {
    say: 'Work goes on that nobody waits for. Make calls with a client that knows the deadline, or give each the signal; proxies in between must close upstream when the caller leaves.',
    code: [
      ...callOut,
      { line: 'await other(query, { signal: request.deadline.signal })' },
      { line: 'proxy_ignore_client_abort off;', note: '# nginx' },
    ],
    more: 'docs/cli.md#stops-when-i-leave',
  },
  notPassedOn: {
    say: 'The next service does not know how much time is left, and works for callers who have given up.',
    code: callOut,
    more: 'docs/cli.md#passes-the-deadline-on',
  },
  leaf: {
    say: 'Start the service with one of its upstreams set to a leaf of mine, and I see what it sends there and when it hangs up.',
    code: [
      { line: 'timebudget doctor --leaf 4100 URL', note: '# answers {} itself' },
      { line: 'timebudget doctor --leaf 4100 --upstream http://index:8080 URL', note: '# passes calls on' },
    ],
    more: 'docs/cli.md#a-leaf',
  },
  malformed: {
    say: 'A header that cannot be read must be ignored, or refused with 400. It never means that time is up, and never that the service fails.',
    code: [{ line: "app.use(deadline({ malformed: 'reject' }))", note: '// 400; left out, it is ignored' }],
    more: 'docs/cli.md#survives-what-it-cannot-read',
  },
  overflow: {
    say: 'A deadline far away breaks it: timers beyond 2^31 ms (24.8 days) fire at once. Cut every deadline to a maximum first.',
    code: [{ line: "app.use(deadline({ max: '60s' }))" }],
    more: 'docs/cli.md#is-not-talked-into-more-time',
  },
  noMaximum: {
    say: 'Whoever calls decides how long it works. Set a maximum.',
    code: [{ line: "app.use(deadline({ max: '60s' }))" }],
    more: 'docs/cli.md#is-not-talked-into-more-time',
  },
  notEarliest: {
    say: 'Of several deadlines the earliest must count, or a header added on the way makes a budget longer. Look for a proxy that keeps only the first or last of repeated headers.',
    code: [{ line: 'app.use(deadline())', note: '// without accept it reads all of them' }],
    more: 'docs/cli.md#is-not-talked-into-more-time',
  },
  clock: {
    say: 'One of the two clocks is wrong. Our pair of headers bears it; an absolute deadline alone, logs and traces do not. Let both machines keep time by NTP.',
    code: [{ line: 'timedatectl set-ntp true' }, { line: 'chronyc tracking' }],
    more: 'docs/cli.md#has-the-right-time',
  },
}
