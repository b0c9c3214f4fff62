import { withDeadline } from '@timebudget/clients/bullmq'
import { fetch } from '@timebudget/clients/fetch'
import { type Job, Worker } from 'bullmq'

/** Works on reports in time; one whose time has run out in the queue is not begun, and none is tried again. */
async function render(job: Job<{ readonly month: string }, string>): Promise<string> {
  const page = await fetch(`${process.env['RENDERER_URL']}/${job.data.month}`)
  return page.text()
}

const connection = { host: '127.0.0.1', port: Number(process.env['REDIS_PORT'] ?? 6379) }
export const worker: Worker = new Worker('reports', withDeadline(render), { connection, concurrency: 4 })
worker.on('failed', (job, error) => console.warn(`report ${job?.data.month}: ${error.message}`))
worker.on('error', (error) => console.error(error))
