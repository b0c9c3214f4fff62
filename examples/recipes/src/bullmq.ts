import { createServer, type Server } from 'node:http'
import { withDeadline } from '@timebudget/clients/bullmq'
import { detach, operation } from '@timebudget/core'
import { withDeadline as withRequestDeadline } from '@timebudget/core/server'
import { Queue, QueueEvents } from 'bullmq'

const connection = { host: '127.0.0.1', port: Number(process.env['REDIS_PORT'] ?? 6379) }
const reports = withDeadline(new Queue<{ readonly month: string }, string>('reports', { connection }))
const events = new QueueEvents('reports', { connection })

/** A report that somebody waits for: its job carries the deadline of the request. */
async function report(month: string): Promise<string> {
  const job = await reports.add('report', { month }, { removeOnComplete: { age: 60 } })
  try {
    return await operation('report', {}, ({ timeout }) => job.waitUntilFinished(events, timeout))
  } catch (error) {
    // nobody waits for it any more; one that runs already goes on to its deadline
    detach(() => job.remove()).catch(() => undefined)
    throw error
  }
}

export const server: Server = createServer(
  withRequestDeadline(
    async (request, response) => {
      response.end(await report(request.url?.slice(1) ?? ''))
    },
    { default: '10s', max: '60s' },
  ),
)
server.listen(process.env['PORT'] ?? 3000)
