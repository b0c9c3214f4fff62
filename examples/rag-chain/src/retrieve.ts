import { setTimeout as sleep } from 'node:timers/promises'
import fastify from 'fastify'
import { deadline } from '@timebudget/fastify'
import { announce } from './announce.ts'
import { corpus, relevance } from './corpus.ts'
import { logNormal, seeded } from './random.ts'
import { numeric } from './settings.ts'
import { budgeted } from './upstream.ts'

// How long the search of a vector store takes: half of the time less than 80 ms.
const searchTime = { median: 80, sigma: 0.4 }

const app = fastify()
if (budgeted) await app.register(deadline)

app.post<{ Body: { question: string } }>('/', async (request) => {
  const { question } = request.body
  const time = logNormal(seeded(`retrieve ${question}`), searchTime)
  // A request without a deadline has no signal: nothing tells this service that nobody waits any more.
  await sleep(time, undefined, { signal: request.deadline?.signal })
  return corpus.toSorted((one, other) => relevance(other, question) - relevance(one, question)).slice(0, 4)
})

await app.listen({ port: numeric('PORT', 0), host: '127.0.0.1' })
announce('retrieve', app.server)
