import { parseArgs } from 'node:util'
import { meanAnswerTokens } from './answer.ts'
import { startChain, type Chain } from './chain.ts'
import { planLoad } from './load.ts'
import { drawReport, type Column } from './report.ts'
import { measure, type Measured, type Progress } from './scenario.ts'
import { parseServerTiming } from './server-timing.ts'
import { Terminal } from './terminal.ts'
import { drawWaterfall } from './waterfall.ts'

const help = `The same load through the same chain, without and with timebudget.

  --tight  a third run: static timeouts of 3 s at every hop, that of the model call included
  --keep   leave the chain up (with timebudget) until Ctrl-C

  OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL   ask a real model, about ten questions a run
  NO_COLOR                                        no colours`

const patience = 3000
const model = { slots: 8, msPerToken: 20 }
const realModel = process.env['OPENAI_BASE_URL']

// 1.8 times what the model can decode; a real one, whose capacity nobody here knows, is only asked a little.
const capacity = (model.slots * 1000) / (meanAnswerTokens * model.msPerToken)
const load = realModel
  ? { seed: 'demo', perSecond: 1, seconds: 10 }
  : { seed: 'demo', perSecond: 1.8 * capacity, seconds: 9 }

interface Run {
  readonly heading: readonly [string, string]
  readonly meaning: string
  readonly timebudget: boolean
  readonly llmTimeout?: number
}

const without: Run = {
  heading: ['without', 'timebudget'],
  meaning:
    'Static timeouts at each hop, a common setup: gateway 3 s, retrieve and rerank 1 s, the model call 10 min\n' +
    "(the default of OpenAI's client). Nothing is propagated: a service does not learn that its caller gave up.",
  timebudget: false,
}
const tight: Run = {
  heading: ['static 3 s', 'everywhere'],
  meaning:
    'The same, but the model call ends 3 s after it began and closes its connection; the model then stops.',
  timebudget: false,
  llmTimeout: 3000,
}
const withBudget: Run = {
  heading: ['with', 'timebudget'],
  meaning:
    'One budget of 3 s, set at the gateway and carried on: each hop knows what is left, work for a user who has\n' +
    'left or is out of time stops at once, and what can no longer end in time is not begun.',
  timebudget: true,
}

const { values: flags } = parseArgs({
  options: { keep: { type: 'boolean' }, tight: { type: 'boolean' }, help: { type: 'boolean' } },
})
const terminal = new Terminal(process.stdout, process.env)
const { paint } = terminal
const chains = new Set<Chain>()

async function main(): Promise<void> {
  const users = planLoad(load)
  introduce(users.length)
  const runs = flags.tight ? [without, tight, withBudget] : [without, withBudget]
  const columns: Column[] = []
  let last: Measured | undefined
  for (const run of runs) {
    const chain = await start(run)
    last = await measure(chain, { users, patience, onProgress: (progress) => showProgress(run, progress) })
    columns.push({ heading: run.heading, summary: last.summary })
    if (run !== withBudget || !flags.keep) await end(chain)
  }
  terminal.line()
  showReport(runs, columns)
  if (last) showRequest(last)
  for (const chain of chains) showKept(chain)
}

function introduce(users: number): void {
  terminal.line(paint('bold', 'One chain, one load, without and with timebudget'))
  terminal.line()
  const llm = realModel ? `${process.env['OPENAI_MODEL']} at ${realModel}` : `llm, ${model.slots} slots`
  terminal.line(`  gateway (Express) → orchestrator (Koa) → retrieve, rerank (Fastify) → ${llm}`)
  const rate = realModel ? '' : ', 1.8 times what the model can answer'
  terminal.line(
    `  ${users} users in ${load.seconds} s${rate}; each leaves after ${patience / 1000} s without an answer`,
  )
  terminal.line()
}

async function start({ timebudget, llmTimeout }: Run): Promise<Chain> {
  const chain = await startChain({
    timebudget,
    settings: {
      BUDGET_MS: String(patience),
      LLM_SLOTS: String(model.slots),
      LLM_MS_PER_TOKEN: String(model.msPerToken),
      ...(llmTimeout && { LLM_TIMEOUT_MS: String(llmTimeout) }),
    },
  })
  chains.add(chain)
  return chain
}

async function end(chain: Chain): Promise<void> {
  chains.delete(chain)
  await chain.stop()
}

function showProgress({ heading }: Run, { answered, unanswered, users, model: busy }: Progress): void {
  const state = busy === undefined ? '' : `; model: ${busy.decoding} busy, ${busy.waiting} waiting`
  const rest = answered + unanswered === users ? ', all users gone' : ''
  terminal.progress(
    `  ${heading.join(' ')}: ${answered} answered, ${unanswered} not, of ${users}${state}${rest}`,
  )
}

function showReport(runs: readonly Run[], columns: readonly Column[]): void {
  for (const [index, row] of drawReport(columns).entries())
    terminal.line(`  ${index < 2 ? paint('bold', row) : row}`)
  for (const { heading, meaning } of runs) {
    terminal.line()
    terminal.line(paint('dim', `  ${heading.join(' ')}: ${meaning.replaceAll('\n', '\n  ')}`))
  }
}

function showRequest({ visits }: Measured): void {
  const answered = visits
    .filter((visit) => visit.answered && visit.serverTiming)
    .toSorted((a, b) => a.latency - b.latency)
  const median = answered[Math.floor(answered.length / 2)]
  terminal.line()
  if (median?.serverTiming === undefined)
    return terminal.line('  No request was answered, so there is none to draw.')
  terminal.line(
    paint('bold', `  One request's budget, as the gateway's Server-Timing tells it (${median.id})`),
  )
  terminal.line()
  const columns = Math.min(60, Math.max(20, terminal.width - 60))
  const picture = drawWaterfall(parseServerTiming(median.serverTiming), { budget: patience, columns, paint })
  for (const row of picture) terminal.line(`  ${row}`)
}

function showKept(chain: Chain): void {
  terminal.line()
  terminal.line('  The chain stays up until Ctrl-C. Ask it, with a budget of your own if you like:')
  terminal.line()
  terminal.line(
    `  curl -i ${chain.gateway}/chat -H 'content-type: application/json' -H 'x-request-timeout-ms: 1500' ` +
      `-d '{"question":"What is a floor?"}'`,
  )
}

let isLeaving = false

// The first cause of leaving counts: what fails because the chain is being ended is no failure.
async function leave(code: number, why?: unknown): Promise<void> {
  if (isLeaving) return
  isLeaving = true
  terminal.line()
  if (why !== undefined) console.error(why instanceof Error ? why.message : why)
  await Promise.all([...chains].map(end))
  process.exit(code)
}

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const) {
  process.once(signal, () => void leave(code))
}

if (flags.help) {
  console.log(help)
} else {
  await main().catch((error: unknown) => leave(1, error))
}
