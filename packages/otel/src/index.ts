export { type MetricsOptions, recordMetrics } from './record-metrics.ts'
export type { GenAiNames } from './gen-ai-metrics.ts'
