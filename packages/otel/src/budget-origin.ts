import { type Deadline, type DeadlineSource, type Ledger, requestStarted } from '@timebudget/core'
import type { BudgetBaggage } from './budget-baggage.ts'

/** The highest number of a hop that three digits can say. */
const lastHop = 999

interface Entry {
  readonly source: DeadlineSource
  readonly budget: number
}

/** Knows where the budget of each request of this process comes from. */
export class BudgetOrigins {
  readonly #service: string | undefined
  /** By the ledger, which a deadline shares with all its children. */
  readonly #entries = new WeakMap<Ledger, Entry>()
  readonly #unsubscribe: () => void

  constructor(service: string | undefined) {
    this.#service = service
    this.#unsubscribe = requestStarted.subscribe(({ deadline, source }) => {
      this.#entries.set(deadline.ledger, { source, budget: deadline.budget })
    })
  }

  stop(): void {
    this.#unsubscribe()
  }

  /** What the next service is told: what the caller told, if the deadline is the caller's, else what began here. */
  onward(deadline: Deadline, received: BudgetBaggage): BudgetBaggage | undefined {
    const entry = this.#entries.get(deadline.ledger)
    const total = Math.round(entry?.budget ?? budgetOfWork(deadline))
    if (total === Infinity) return undefined
    if (entry?.source !== 'header') return { totalMs: total, origin: this.#service, hop: 1 }
    const { totalMs = total, origin, hop = 0 } = received
    return { totalMs, origin, hop: Math.min(hop + 1, lastHop) }
  }
}

/** Of work that no request has begun: its first operation knows what was left when it started. */
function budgetOfWork(deadline: Deadline): number {
  const first = deadline.ledger.entries[0]
  if (first === undefined || first.remaining === Infinity) return deadline.budget
  return first.remaining + first.start
}

/** The name OpenTelemetry knows this service by, if its environment says so. */
export function serviceName(environment: NodeJS.ProcessEnv = process.env): string | undefined {
  const { OTEL_SERVICE_NAME: name, OTEL_RESOURCE_ATTRIBUTES: attributes = '' } = environment
  if (name !== undefined && name !== '') return name
  const given = /(?:^|,)\s*service\.name\s*=\s*([^,\s]+)/.exec(attributes)?.[1]
  try {
    return given && decodeURIComponent(given)
  } catch {
    return given
  }
}
