import type { IncomingMessage, ServerResponse } from 'node:http'

/** A Koa context, as far as it matters here. */
export interface ContextLike {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  respond?: boolean | undefined
}

/** A Fastify instance, as far as it matters here. */
export interface FastifyLike {
  readonly prefix: string
  all(path: string, handler: (request: RequestLike, reply: ReplyLike) => unknown): unknown
}

interface RequestLike {
  readonly raw: IncomingMessage
}

interface ReplyLike {
  readonly raw: ServerResponse
  hijack(): unknown
}

/** A request of any host, and where the inspector is there. */
export interface Visit {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Whole, as it was asked for: Express cuts what it has mounted by off the URL. */
  readonly url: string
  /** What the host has mounted the inspector by; `''` if it has not. */
  readonly mount: string
}

/** Answers a visit, or says that it is none of its business. */
export type Answerer = (visit: Visit) => Promise<void> | undefined

type Next = (error?: unknown) => unknown

/** What hosts call their middleware, listeners and plugins with. */
export type HostCall =
  | readonly [request: IncomingMessage, response: ServerResponse, next?: Next]
  | readonly [context: ContextLike, next: () => Promise<unknown>]
  | readonly [fastify: FastifyLike, options: object, done: () => void]

/** Express, Koa, Fastify and node:http, told apart by what they call with. */
export function answerHost(
  call: HostCall,
  { answer, path }: { readonly answer: Answerer; readonly path: string },
): Promise<unknown> | undefined {
  const [first, second] = call
  if (typeof second === 'function')
    return inKoa(first as ContextLike, second as () => Promise<unknown>, answer)
  if ('writeHead' in second) return inNode(first as IncomingMessage, second, { next: call[2], answer })
  registerIn(first as FastifyLike, { answer, path })
  call[2]?.()
  return undefined
}

function inNode(
  request: IncomingMessage & { readonly originalUrl?: string; readonly baseUrl?: string },
  response: ServerResponse,
  { next, answer }: { readonly next: Next | undefined; readonly answer: Answerer },
): undefined {
  const url = request.originalUrl ?? request.url ?? '/'
  const answering = answer({ request, response, url, mount: request.baseUrl ?? '' })
  if (answering !== undefined) return undefined
  if (next !== undefined) next()
  else response.writeHead(404).end()
  return undefined
}

async function inKoa(context: ContextLike, next: () => Promise<unknown>, answer: Answerer): Promise<unknown> {
  const { req: request, res: response } = context
  const answering = answer({ request, response, url: request.url ?? '/', mount: '' })
  if (answering === undefined) return next()
  context.respond = false
  return answering
}

/** Under its prefix, or else by a path of its own: `/*` alone would take every request of the application. */
function registerIn(
  fastify: FastifyLike,
  { answer, path }: { readonly answer: Answerer; readonly path: string },
): void {
  const own = fastify.prefix === '' ? path : ''
  const handle = ({ raw: request }: RequestLike, reply: ReplyLike): void => {
    reply.hijack()
    const visit = { request, response: reply.raw, url: request.url ?? '/', mount: fastify.prefix }
    if (answer(visit) === undefined) reply.raw.writeHead(404).end()
  }
  fastify.all(own === '' ? '/' : own, handle)
  fastify.all(`${own}/*`, handle)
}
