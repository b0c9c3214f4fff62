import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { seeded } from './random.ts'

/** One user who asks one question, `at` ms after the load's start. */
export interface User {
  readonly id: string
  readonly at: number
  readonly question: string
}

/** How a user fared. */
export interface Visit {
  readonly id: string
  /** Whether the whole answer was there before the user gave up. */
  readonly answered: boolean
  /** Milliseconds until the answer, the error, or the user's leaving. */
  readonly latency: number
  /** When that was, in Unix epoch ms; from then on nobody waits. */
  readonly ended: number
  /** The answer's Server-Timing header. */
  readonly serverTiming: string | undefined
}

const topics = ['budgets', 'deadlines', 'queues', 'retries', 'cancelling', 'floors', 'fallbacks', 'clocks']

/** The users of a load: they come at random, `perSecond` of them on average; the same seed always gives the same users. */
export function planLoad(load: {
  readonly seed: string
  readonly perSecond: number
  readonly seconds: number
}): User[] {
  const next = seeded(load.seed)
  const users: User[] = []
  for (let at = 0; ;) {
    at += (-Math.log(1 - next()) / load.perSecond) * 1000
    if (at >= load.seconds * 1000) return users
    const topic = topics[Math.floor(next() * topics.length)]
    users.push({
      id: `${load.seed}-${users.length}`,
      at,
      question: `Question ${users.length}: what is said about ${topic}?`,
    })
  }
}

/** Sends the users to a gateway; each closes the connection when `patience` ms have passed. `onEnd` hears of each at once. */
export async function runLoad(
  users: readonly User[],
  target: { readonly url: string; readonly patience: number; readonly onEnd?: (visit: Visit) => void },
): Promise<Visit[]> {
  const agent = new Agent({ keepAlive: true })
  const start = performance.now()
  try {
    return await Promise.all(
      users.map(async (user) => {
        await sleep(start + user.at - performance.now())
        const visit = await ask(user, { ...target, agent })
        target.onEnd?.(visit)
        return visit
      }),
    )
  } finally {
    agent.destroy()
  }
}

function ask(
  user: User,
  target: { readonly url: string; readonly patience: number; readonly agent: Agent },
): Promise<Visit> {
  const started = performance.now()
  return new Promise((resolve) => {
    const end = (answered: boolean, serverTiming?: string): void => {
      clearTimeout(patience)
      resolve({
        id: user.id,
        answered,
        latency: performance.now() - started,
        ended: Date.now(),
        serverTiming,
      })
    }
    const outgoing = request(
      `${target.url}/chat`,
      {
        method: 'POST',
        agent: target.agent,
        headers: { 'content-type': 'application/json', 'x-request-id': user.id },
      },
      (answer) => {
        const timing = answer.headers['server-timing']
        answer.once('end', () =>
          end(answer.statusCode === 200, Array.isArray(timing) ? timing.join(', ') : timing),
        )
        answer.resume()
      },
    )
    const patience = setTimeout(() => outgoing.destroy(new Error('the user has left')), target.patience)
    outgoing.once('error', () => end(false))
    outgoing.end(JSON.stringify({ question: user.question }))
  })
}
