import { setTimeout as sleep } from 'node:timers/promises'
import type { Chain } from './chain.ts'
import type { DecoderStats } from './decoder.ts'
import { planLoad, runLoad, type User, type Visit } from './load.ts'
import { summarise, type Summary } from './report.ts'

/** What a load has come to so far. */
export interface Progress {
  readonly answered: number
  readonly unanswered: number
  readonly users: number
  /** What the stand-in model is doing; absent with a real one. */
  readonly model: Pick<DecoderStats, 'decoding' | 'waiting'> | undefined
}

/** What a load came to. */
export interface Measured {
  readonly visits: readonly Visit[]
  readonly summary: Summary
}

const lookEvery = 250

/** Sends the users through a chain, waits until its model has come to rest, and adds up. */
export async function measure(
  chain: Chain,
  load: {
    readonly users: readonly User[]
    readonly patience: number
    readonly onProgress?: (progress: Progress) => void
  },
): Promise<Measured> {
  await warmUp(chain, load.patience)
  const seen: Visit[] = []
  const tell = async (): Promise<boolean> => {
    const stats = await statsOf(chain)
    const answered = seen.filter((visit) => visit.answered).length
    load.onProgress?.({
      answered,
      unanswered: seen.length - answered,
      users: load.users.length,
      model: stats,
    })
    // What the model still does for users who have left belongs to the run.
    return seen.length === load.users.length && (stats === undefined || stats.decoding + stats.waiting === 0)
  }
  const running = runLoad(load.users, {
    url: chain.gateway,
    patience: load.patience,
    onEnd: (visit) => seen.push(visit),
  })
  await Promise.race([restOf(tell), chain.failure])
  const visits = await running
  return { visits, summary: summarise(visits, (await statsOf(chain))?.recent) }
}

async function restOf(tell: () => Promise<boolean>): Promise<void> {
  while (!(await tell())) await sleep(lookEvery)
}

// The first calls of a fresh process pay for connections and compilation; no user of the load should.
async function warmUp(chain: Chain, patience: number): Promise<void> {
  const users = planLoad({ seed: 'warm-up', perSecond: 1, seconds: 60 })
    .slice(0, 4)
    .map((user) => ({ ...user, at: 0 }))
  await Promise.race([runLoad(users, { url: chain.gateway, patience }), chain.failure])
}

async function statsOf({ llm }: Chain): Promise<DecoderStats | undefined> {
  if (llm === undefined) return undefined
  const response = await fetch(`${llm}/stats`)
  return (await response.json()) as DecoderStats
}
