import type { ServerResponse } from 'node:http'
import { currentDeadline, Deadline } from '@timebudget/core'
import { deadlineOf } from '@timebudget/core/server'
import { resolveStreamOptions, type StreamOptions } from '../options.ts'
import { isOver, type StreamTarget, takeOver } from '../target.ts'
import { follow } from './follow.ts'
import type { ResumeStore } from './store.ts'

/** What `resumeStream()` takes beside the store. */
export type FollowOptions = Pick<StreamOptions, 'heartbeat' | 'retry' | 'clock'>

/**
 * Answers a GET by which a client takes up a stream: `?stream=<id>` and `Last-Event-ID`. What it has missed comes first,
 * then what is still to come; 410 if the stream is not known any more, or what was missed is not kept. Returns whether
 * the client now follows the stream.
 *
 *     app.get('/chat', (request, response) => resumeStream(response, store))
 */
export async function resumeStream(
  target: StreamTarget,
  store: ResumeStore,
  options: FollowOptions = {},
): Promise<boolean> {
  const resolved = resolveStreamOptions(options)
  const response = takeOver(target)
  const { headers } = response.req
  const id = streamIdOf(response)
  const after = eventNumber(headers['last-event-id'])
  const frames = id === undefined || after === undefined ? undefined : await store.read(id, after)
  if (isOver(response) || response.headersSent) {
    await frames?.return?.()
    return false
  }
  if (frames === undefined || after === undefined) {
    answer(response, 410, 'STREAM_GONE', 'the stream is not known here, or what was missed of it is not kept')
    return false
  }
  const deadline = deadlineOf(response.req) ?? currentDeadline() ?? Deadline.after(Infinity)
  follow(response, { frames, after, deadline, options: resolved })
  return true
}

/**
 * Answers a DELETE (or POST) by which a user stops a stream, `?stream=<id>`: its work is cancelled at once, wherever it
 * runs. 204, or 404 if there is no such stream running. Returns whether there was.
 *
 *     app.delete('/chat', (request, response) => stopStream(response, store))
 */
export async function stopStream(target: StreamTarget, store: ResumeStore): Promise<boolean> {
  const response = takeOver(target)
  const id = streamIdOf(response)
  const isStopped = id !== undefined && (await store.stop(id))
  if (isOver(response) || response.headersSent) return isStopped
  if (isStopped) {
    response.statusCode = 204
    response.end()
  } else answer(response, 404, 'STREAM_UNKNOWN', 'no such stream is running')
  return isStopped
}

function streamIdOf(response: ServerResponse): string | undefined {
  const { url = '' } = response.req
  const query = url.indexOf('?')
  return query < 0 ? undefined : (new URLSearchParams(url.slice(query + 1)).get('stream') ?? undefined)
}

/** The number in `Last-Event-ID`: 0 where it is absent, `undefined` where it is none of ours. */
function eventNumber(header: string | string[] | undefined): number | undefined {
  if (header === undefined || header === '') return 0
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined
}

function answer(response: ServerResponse, status: number, code: string, detail: string): void {
  response.statusCode = status
  response.setHeader('content-type', 'application/problem+json')
  response.setHeader('cache-control', 'no-store')
  response.end(JSON.stringify({ type: 'about:blank', status, code, detail }))
}
