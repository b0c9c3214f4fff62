import { guides } from './documents.ts'
import { cellsOf, inlineCodeOf, type TextLine } from './markdown.ts'

/** A table of options: where it stands, and the names in its first column. */
export interface OptionTable {
  /** `docs/llm.md#ladders, of `model``; a second one headed alike is `... (2)`. */
  readonly place: string
  readonly names: readonly string[]
}

/** The tables whose first column is headed `option`, of whatever; in Chinese `选项`. */
export function optionTables(): OptionTable[] {
  const seen = new Map<string, number>()
  return guides.flatMap(({ path, lines }) =>
    lines.flatMap(({ text, under }, index) => {
      const [head = ''] = cellsOf(text) ?? []
      const isHead = /\boption\b|^选项/.test(head) && /^\|[ :|-]+$/.test(lines[index + 1]?.text ?? '')
      if (!isHead) return []
      const rest = head.replace(/option|选项/, '').trim()
      const title = `${path}#${under}${rest === '' ? '' : `, ${rest}`}`
      const count = (seen.get(title) ?? 0) + 1
      seen.set(title, count)
      return [
        { place: count === 1 ? title : `${title} (${count})`, names: namesBelow(lines.slice(index + 2)) },
      ]
    }),
  )
}

function namesBelow(lines: readonly TextLine[]): string[] {
  const names: string[] = []
  for (const { text } of lines) {
    const [first] = cellsOf(text) ?? []
    if (first === undefined) break
    names.push(...inlineCodeOf(first))
  }
  return names
}

/** Whose options each table lists, as a type. */
export const optionTypes: Readonly<Record<string, string>> = {
  'docs/guide.md#outgoing-calls': "import('@timebudget/clients/fetch').ClientOptions<unknown>",
  'docs/guide.md#options-of-deadline': "import('@timebudget/core/server').ServerOptions",
  'docs/guide.zh-CN.md#对外调用': "import('@timebudget/clients/fetch').ClientOptions<unknown>",
  'docs/guide.zh-CN.md#deadline-的选项': "import('@timebudget/core/server').ServerOptions",
  'docs/inspector.md#where-it-is': "Parameters<typeof import('@timebudget/inspector').inspector>[0]",
  'docs/llm.md#four-timeouts': "import('@timebudget/llm').GovernedFetchOptions",
  'docs/llm.md#generatetext-and-streamtext': "import('@timebudget/llm').AiSdkMiddlewareOptions",
  'docs/llm.md#ladders': "import('@timebudget/llm').LadderOptions",
  'docs/llm.md#ladders, of `model`': "import('@timebudget/llm').ModelOptions",
  'docs/llm.md#costs': "import('@timebudget/llm').CostMeterOptions",
  'docs/resilience.md#retries-hedges-and-the-retry-budget': "import('@timebudget/resilience').RetryOptions",
  'docs/resilience.md#retries-hedges-and-the-retry-budget (2)':
    "import('@timebudget/resilience').RetryBudgetOptions",
  'docs/resilience.md#circuit-breakers': "import('@timebudget/resilience').BreakerOptions",
  'docs/resilience.md#learned-floors': "import('@timebudget/resilience').LearnedFloorOptions",
  'docs/resilience.md#deadline-queues, of the queue': "import('@timebudget/resilience').DeadlineQueueOptions",
  'docs/resilience.md#deadline-queues, of a request': "import('@timebudget/resilience').QueueRequest",
  'docs/resilience.md#cpu-bound-work': "import('@timebudget/resilience').OffloadOptions",
  'docs/sse.md#on-the-server, `sse()`': "import('@timebudget/sse').StreamOptions",
  'docs/sse.md#leaving-is-not-stopping, `memoryResume()`': "import('@timebudget/sse').MemoryResumeOptions",
  'docs/sse.md#in-the-page, `streamChat()`':
    "Parameters<typeof import('@timebudget/sse/browser').streamChat>[0]",
  'docs/telemetry.md#traces, of `startTelemetry`': "import('@timebudget/otel').TelemetryOptions",
  'docs/telemetry.md#traces, of all three': "import('@timebudget/otel').SpanOptions",
  'docs/telemetry.md#propagation-and-baggage': "import('@timebudget/otel').PropagatorOptions",
  'docs/telemetry.md#metrics-dashboards-and-alerts': "import('@timebudget/otel').MetricsOptions",
}

/** A module that does not compile where a table lists an option that the type lacks. */
export function tablesModule(tables: readonly OptionTable[]): string {
  const checks = tables.map(({ place, names }) => {
    const keys = names.map((name) => `'${name}'`).join(', ')
    return `export const _${tables.findIndex((table) => table.place === place)}: readonly KeyOf<${optionTypes[place]}>[] = [${keys}] // ${place}`
  })
  return ['type KeyOf<T> = T extends unknown ? keyof T : never', ...checks].join('\n')
}
