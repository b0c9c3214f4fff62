import type { EventChannel } from '@timebudget/core'
import type { BoundedNames } from './name-metrics.ts'
import type { SaneMeter } from './sane-metrics.ts'

/** What every group of metrics is made with. */
export interface Recording {
  readonly meter: SaneMeter
  /** Tells a group's names apart, as far as the limit allows; each kind of name has a limit of its own. */
  readonly names: () => BoundedNames
  readonly listen: <Payload>(channel: EventChannel<Payload>, listener: (payload: Payload) => void) => void
  /** Called when the recording stops. */
  readonly onStop: (clear: () => void) => void
}
