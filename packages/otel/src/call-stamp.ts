import { context, propagation } from '@opentelemetry/api'
import { currentDeadline, type Deadline, deadlineSent, type DeadlineSent } from '@timebudget/core'
import { isApiShared } from './api-copies.ts'
import { hasRoomFor } from './baggage-room.ts'
import { budgetBaggageIn, formatBudgetBaggage, hasBudgetBaggage } from './budget-baggage.ts'
import { BudgetOrigins } from './budget-origin.ts'
import { guarded } from './guarded.ts'
import { deadlineHeaderNames, liveHeaders } from './live-headers.ts'
import type { OutgoingCall } from './outgoing-call.ts'
import type { ResolvedPropagatorOptions } from './propagator-options.ts'
import { isTracingSuppressed } from './suppressed.ts'

/** Writes what a call carries by the rules of a propagator, once, however many propagators there are. */
export class CallStamp {
  readonly #options: ResolvedPropagatorOptions
  readonly #origins: BudgetOrigins
  readonly #headerNames: readonly string[]
  readonly #carriesBaggage: boolean

  constructor(options: ResolvedPropagatorOptions) {
    this.#options = options
    this.#origins = new BudgetOrigins(options.service)
    this.#headerNames = deadlineHeaderNames(options.emit)
    this.#carriesBaggage = options.inner.fields().includes('baggage')
  }

  stop(): void {
    this.#origins.stop()
  }

  /** Called as the request is made; never throws. */
  write(call: OutgoingCall): void {
    // the ambient deadline is the truth: frameworks lose what is in OpenTelemetry's context
    const deadline = currentDeadline()
    if (deadline === undefined) return
    guarded('propagation', () => this.#write(call, deadline), undefined)
  }

  #write(call: OutgoingCall, deadline: Deadline): void {
    const { url } = call
    if (url === undefined) return
    const injects = this.#options.injectsInto(url) && !this.#isCarrying(call)
    const tells = this.#carriesBaggage && this.#options.trusts(url)
    if (!injects && !tells) return
    // an exporter's request is made in the context of some request, whose deadline is not its own
    if (!isApiShared() || isTracingSuppressed(context.active()) || !call.isInCallersContext) return
    if (injects) this.#inject(call, { deadline, host: url.host })
    if (tells) this.#tell(call, deadline)
  }

  /** A client of ours has written, or another propagator, or the user. */
  #isCarrying(call: OutgoingCall): boolean {
    return this.#headerNames.some((name) => call.header(name) !== undefined)
  }

  #inject(call: OutgoingCall, { deadline, host }: Omit<DeadlineSent, 'sent'>): void {
    const headers = [...liveHeaders(deadline, this.#options.emit)]
    for (const [name, value] of headers) call.setHeader(name, value)
    const [first] = headers
    if (first === undefined || !deadlineSent.observed) return
    // a client of ours that writes after this has replaced it by then, and says itself what it sends
    process.nextTick(() => {
      if (call.holds(...first)) deadlineSent.publish(() => ({ deadline, host, sent: true }))
    })
  }

  #tell(call: OutgoingCall, deadline: Deadline): void {
    const active = context.active()
    const told = this.#origins.onward(deadline, budgetBaggageIn(active))
    const entries = told === undefined ? '' : formatBudgetBaggage(told)
    const written = call.header('baggage')
    if (entries === '' || (written !== undefined && hasBudgetBaggage(written))) return
    if (!hasRoomFor(entries, { written, baggage: propagation.getBaggage(active) })) return
    call.setHeader('baggage', written === undefined ? entries : `${written},${entries}`)
  }
}
