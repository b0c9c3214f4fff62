export { ManualClock } from './manual-clock.ts'
export {
  slowUpstream,
  type SlowUpstream,
  type SlowUpstreamOptions,
  type UpstreamRequest,
} from './slow-upstream.ts'
