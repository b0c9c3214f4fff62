import { setMaxListeners } from 'node:events'
import type { ProbeFlags } from './flags.ts'
import { probe, type Probe } from './probe.ts'

/** Sends many, so many at a time, each on a connection of its own; ends early, with those that had ended, when stopped. */
export async function probeMany(
  flags: ProbeFlags,
  stop: AbortSignal,
  onProgress: (done: number) => void,
): Promise<{ readonly probes: readonly Probe[]; readonly took: number }> {
  // each request listens to it
  setMaxListeners(0, stop)
  const startedAt = performance.now()
  const probes: Probe[] = []
  let begun = 0
  const workOff = async (): Promise<void> => {
    while (begun < flags.count && !stop.aborted) {
      begun += 1
      const done = await probe(flags, stop)
      if (done.outcome === 'stopped') return
      probes.push(done)
      onProgress(probes.length)
    }
  }
  await Promise.all(Array.from({ length: Math.min(flags.concurrency, flags.count) }, workOff))
  return { probes, took: performance.now() - startedAt }
}
