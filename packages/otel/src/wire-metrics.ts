import { deadlineSent, headerMalformed, skewMeasured, systemClock } from '@timebudget/core'
import { PeerClocks } from '@timebudget/core/wire'
import type { Recording } from './listening-metrics.ts'
import { metricLabels, metricNames } from './metric-names.ts'

/** The headers that servers read by default: a first error of one of them is seen by `rate()` too. */
const usualHeaders = [
  'x-request-deadline',
  'x-request-timeout-ms',
  'grpc-timeout',
  'connect-timeout-ms',
  'x-envoy-expected-rq-timeout-ms',
]

/** Milliseconds for which a peer's last skew stands; as long as core remembers a peer's messages. */
const remembered = 120_000

interface Skew {
  readonly milliseconds: number
  readonly at: number
}

/** What goes over the wire: deadlines sent, headers that cannot be read, and by how much peers' clocks are off. */
export function recordWire(recording: Recording): void {
  recordPropagation(recording)
  recordSkew(recording)
}

function recordPropagation({ meter, names, listen }: Recording): void {
  const calls = meter.counter(metricNames.propagationCalls, {
    description: 'Calls of other services, and whether they carried the deadline.',
    unit: '{call}',
    zeros: [true, false].map((sent) => ({ [metricLabels.propagated]: sent })),
  })
  listen(deadlineSent, ({ sent }) => calls(1, { [metricLabels.propagated]: sent }))

  const errors = meter.counter(metricNames.propagationErrors, {
    description: 'Deadline headers that could not be read.',
    unit: '{header}',
    zeros: usualHeaders.map((header) => ({ [metricLabels.header]: header })),
  })
  const headers = names()
  for (const header of usualHeaders) headers.of(header)
  listen(headerMalformed, ({ header }) => errors(1, { [metricLabels.header]: headers.of(header) }))
}

function recordSkew({ meter, names, listen, onStop }: Recording): void {
  const peers = names()
  const clocks = new PeerClocks()
  const skews = new Map<string, Skew>()
  listen(skewMeasured, ({ peer, skew: transit }) => {
    const name = peers.of(peer)
    const at = systemClock.now()
    // what one message took may be waiting: the shortest of the last two minutes is the clocks' doing
    const { skew } = clocks.of(peer).observe(transit, systemClock.epoch())
    const known = skews.get(name)
    // of those that share a name the worst stands
    const isWorse = known === undefined || name === peer || Math.abs(skew) >= Math.abs(known.milliseconds)
    if (isWorse || at - known.at > remembered) skews.set(name, { milliseconds: skew, at })
  })
  const stop = meter.observe(
    metricNames.peerSkew,
    {
      description:
        "By how much a peer's clock is behind ours, the shortest transit included; 0 once nothing was heard of it.",
      unit: 's',
    },
    function* read() {
      const now = systemClock.now()
      for (const [peer, { milliseconds, at }] of skews)
        // an SDK repeats for ever what it was told once: silence would be taken for the last value
        yield [now - at > remembered ? 0 : milliseconds / 1000, { [metricLabels.peer]: peer }] as const
    },
  )
  onStop(stop)
}
