/** What each metric of ours is called; docs/telemetry.md says what each of them tells. Durations are in seconds. */
export const metricNames = {
  requests: 'deadline.requests',
  activeRequests: 'deadline.request.active',
  budgetLimit: 'deadline.budget.limit',
  budgetRemaining: 'deadline.budget.remaining',
  budgetUtilization: 'deadline.budget.utilization',
  overrun: 'deadline.overrun.duration',
  clientsClosed: 'deadline.client.closed',
  propagationCalls: 'deadline.propagation.calls',
  propagationErrors: 'deadline.propagation.errors',
  peerSkew: 'deadline.peer.skew',
  operationDuration: 'deadline.operation.duration',
  cancellation: 'deadline.cancellation.duration',
  lateWork: 'deadline.work.late.duration',
  work: 'deadline.work.duration',
  wastedWork: 'deadline.work.wasted',
  queueWait: 'deadline.queue.wait.duration',
  queueDecisions: 'deadline.queue.decisions',
  breakerState: 'deadline.breaker.state',
  breakerMoves: 'deadline.breaker.moves',
  retryDecisions: 'deadline.retry.decisions',
  hedges: 'deadline.retry.hedges',
  floorDecisions: 'deadline.floor.decisions',
  floorDoubts: 'deadline.floor.doubts',
  loopLag: 'deadline.loop.lag',
  llmCalls: 'deadline.llm.calls',
  llmFirstToken: 'deadline.llm.time_to_first_token',
  llmQuestions: 'deadline.llm.questions',
  llmAnswers: 'deadline.llm.answers',
  llmCost: 'deadline.llm.cost',
} as const

/** What the attributes of our metrics are called. */
export const metricLabels = {
  outcome: 'deadline.outcome',
  source: 'deadline.source',
  clamped: 'deadline.clamped',
  goneBy: 'deadline.gone_by',
  propagated: 'deadline.propagated',
  header: 'deadline.header',
  peer: 'deadline.peer',
  operation: 'deadline.operation',
  /** What came to its end: the operation, or the work it had begun. */
  ended: 'deadline.ended',
  /** Whose time it was: a request's, a late operation's, or a late answer's. */
  workKind: 'deadline.work.kind',
  queue: 'deadline.queue',
  decision: 'deadline.decision',
  breaker: 'deadline.breaker',
  breakerState: 'deadline.breaker.state',
  doubt: 'deadline.floor.doubt',
  rung: 'deadline.rung',
  complete: 'deadline.answer.complete',
  reason: 'deadline.answer.reason',
  feature: 'deadline.feature',
  currency: 'deadline.cost.currency',
  estimated: 'deadline.cost.estimated',
} as const

/** Attributes of the semantic conventions for generative AI and of errors; the strings, since all of them are in development. */
export const genAiLabels = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  model: 'gen_ai.request.model',
  tokenType: 'gen_ai.token.type',
  tokenModality: 'gen_ai.token.modality',
  errorType: 'error.type',
} as const
