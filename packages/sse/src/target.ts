import type { ServerResponse } from 'node:http'

/** A Fastify reply, as far as it matters here. */
export interface ReplyLike {
  readonly raw: ServerResponse
  getHeaders(): Readonly<Record<string, number | string | string[] | undefined>>
  hijack(): unknown
}

/** A Koa context, as far as it matters here. */
export interface ContextLike {
  readonly res: ServerResponse
  respond?: boolean | undefined
}

/** What a stream can be sent on: a response of Node's or Express's, a Fastify reply, a Koa context. */
export type StreamTarget = ServerResponse | ReplyLike | ContextLike

/**
 * Node's response behind a framework's object, which the framework leaves alone from now on.
 * @throws TypeError for anything else.
 */
export function takeOver(target: StreamTarget): ServerResponse {
  if ('hijack' in target) {
    const { raw } = target
    target.hijack()
    if (!raw.headersSent) {
      for (const [name, value] of Object.entries(target.getHeaders())) {
        if (value !== undefined) raw.setHeader(name, value)
      }
    }
    return raw
  }
  if ('writeHead' in target) return target
  if ('res' in target && typeof target.res.writeHead === 'function') {
    target.respond = false
    return target.res
  }
  throw new TypeError(
    'target: expected a response of node:http or Express, a Fastify reply, or a Koa context',
  )
}

/** Whether nothing that is written on a response can reach its client any more. */
export function isOver(response: ServerResponse): boolean {
  const { stream } = response as ServerResponse & { readonly stream?: { readonly destroyed: boolean } }
  return response.writableEnded || response.destroyed || stream?.destroyed === true || response.req.aborted
}
