import { setTimeout as sleep } from 'node:timers/promises'
import fastify from 'fastify'
import { deadline } from '@timebudget/fastify'
import { announce } from './announce.ts'
import { relevance, type Passage } from './corpus.ts'
import { logNormal, seeded } from './random.ts'
import { numeric } from './settings.ts'
import { budgeted } from './upstream.ts'

// How long a small cross-encoder takes over four passages: half of the time less than 60 ms.
const scoringTime = { median: 60, sigma: 0.4 }

const app = fastify()
if (budgeted) await app.register(deadline)

app.post<{ Body: { question: string; passages: Passage[] } }>('/', async (request) => {
  const { question, passages } = request.body
  const time = logNormal(seeded(`rerank ${question}`), scoringTime)
  await sleep(time, undefined, { signal: request.deadline?.signal })
  const score = (passage: Passage): number => relevance(passage, question) / passage.text.length
  return passages.toSorted((one, other) => score(other) - score(one))
})

await app.listen({ port: numeric('PORT', 0), host: '127.0.0.1' })
announce('rerank', app.server)
