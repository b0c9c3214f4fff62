// A service that shares with its replicas, through Redis, what its floor has learned and what its streams have said.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { operation, requestFinished, requestStarted } from '@timebudget/core'
import { deadline } from '@timebudget/express'
import { learnedFloor, redisStore } from '@timebudget/resilience'
import { sse } from '@timebudget/sse'
import { redisResume } from '@timebudget/sse/redis'
import express from 'express'
import { Redis } from 'ioredis'

const { redis } = JSON.parse(process.argv[2])
const report = (event, details) => process.connected && process.send({ event, ...details })
requestStarted.subscribe(() => report('started'))
requestFinished.subscribe(({ outcome }) => report('finished', { outcome }))

const connect = () => new Redis({ host: '127.0.0.1', port: redis }).on('error', () => {})
const floor = learnedFloor('work', { store: redisStore(connect()) })
const store = redisResume({ publisher: connect(), subscriber: connect() })

const app = express()
app.use(deadline({ default: '10s' }))
app.get('/quote', async (_request, response) => {
  response.send(await operation('work', { floor }, () => sleep(5, 'done')))
})
app.get('/stream', (_request, response) => {
  void sse(response, { resume: store }).pipe(async function* () {
    for (const word of ['one ', 'two ', 'three']) {
      yield word
      await sleep(20)
    }
  })
})

const server = createServer(app)
server.listen(0, '127.0.0.1', () => report('listening', { port: server.address().port }))
process.on('disconnect', () => process.exit(1))
process.on('uncaughtException', ({ stack }) => report('crashed', { stack }))
process.on('unhandledRejection', (reason) => report('crashed', { stack: String(reason?.stack ?? reason) }))
