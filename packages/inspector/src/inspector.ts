import type { IncomingMessage, ServerResponse } from 'node:http'
import { Deadline } from '@timebudget/core'
import {
  assetAnswer,
  type InspectorAnswer,
  jsonAnswer,
  notFound,
  redirectInto,
  send,
  wrongMethod,
} from './answer.ts'
import { isPageFile } from './assets.ts'
import { answerHost, type ContextLike, type FastifyLike, type HostCall, type Visit } from './hosts.ts'
import { Observatory } from './observatory.ts'
import { type InspectorOptions, type ResolvedInspectorOptions, resolveInspectorOptions } from './options.ts'

/** The inspector, as each host calls it: an Express middleware, a Koa middleware, a Fastify plugin, a listener. */
export interface Inspector {
  (request: IncomingMessage, response: ServerResponse, next?: (error?: unknown) => void): void
  (context: ContextLike, next: () => Promise<unknown>): Promise<unknown>
  // last, since Fastify infers a plugin's options from the last one
  (fastify: FastifyLike, options: object, done: () => void): void
  /** Stops listening; what it has seen so far stays on its page. */
  close(): void
}

/**
 * A page that draws the budgets of this process live; it listens from now on.
 *
 *     app.use('/__budget', inspector())                           // Express
 *     app.use(inspector())                                        // Koa, at /__budget
 *     await app.register(inspector(), { prefix: '/__budget' })    // Fastify
 *
 * In production (`NODE_ENV`) it is off, unless a `guard` says who may see it.
 * @throws TypeError that names the option which is unknown or cannot be read.
 */
export function inspector(options?: InspectorOptions): Inspector {
  const resolved = resolveInspectorOptions(options)
  const observatory = new Observatory(resolved)
  if (resolved.enabled) observatory.watch()

  function answer(visit: Visit): Promise<void> | undefined {
    const place = placeOf(visit, resolved.path)
    return place === undefined ? undefined : serve(visit, place, { observatory, options: resolved })
  }

  function inspect(...call: HostCall): Promise<unknown> | undefined {
    return answerHost(call, { answer, path: resolved.path })
  }
  return Object.assign(inspect as Omit<Inspector, 'close'>, { close: () => observatory.close() }) as Inspector
}

/** What is asked for: a name below the inspector's own path, `''` for the page, with the query. */
interface Place {
  /** Absent for the path itself, without a slash at its end. */
  readonly name: string | undefined
  /** The last part of the path. */
  readonly segment: string
  readonly query: URLSearchParams
}

/** At its own path, there or below what a router is mounted by; else where it has been mounted itself. */
function placeOf({ url, mount }: Visit, path: string): Place | undefined {
  const own = placeBelow(mount + path, url)
  if (own !== undefined || mount === '') return own
  const mounted = placeBelow(mount, url)
  // nothing tells whether it or a router of the application has been mounted: what is none of its files is the router's
  return mounted !== undefined && isOwnName(mounted.name) ? mounted : undefined
}

function isOwnName(name: string | undefined): boolean {
  return name === undefined || name === '' || name === snapshotName || isPageFile(name)
}

function placeBelow(base: string, url: string): Place | undefined {
  const [pathname = '', query = ''] = url.split('?', 2)
  if (!pathname.startsWith(base)) return undefined
  const rest = pathname.slice(base.length)
  if (rest !== '' && !rest.startsWith('/')) return undefined
  return {
    name: rest === '' ? undefined : rest.slice(1),
    segment: base.slice(base.lastIndexOf('/') + 1),
    query: new URLSearchParams(query),
  }
}

const snapshotName = 'snapshot.json'
/** A guard that has not answered by then says no: a visitor must not wait for ever, nor be kept for ever. */
const guardPatience = '3s'

interface Serving {
  readonly observatory: Observatory
  readonly options: ResolvedInspectorOptions
}

async function serve({ request, response }: Visit, place: Place, serving: Serving): Promise<void> {
  try {
    serving.observatory.hide(request)
    send(request, response, await answerFor(request, place, serving))
  } catch {
    // an observer hurts nobody: whatever went wrong concerns this one visit
    response.destroy()
  }
}

async function answerFor(
  visitor: IncomingMessage,
  { name, segment, query }: Place,
  { observatory, options }: Serving,
): Promise<InspectorAnswer> {
  if (!options.enabled || !(await isAllowed(visitor, options))) return notFound
  if (visitor.method !== 'GET' && visitor.method !== 'HEAD') return wrongMethod
  if (name === undefined) return redirectInto(segment)
  if (name !== snapshotName) return assetAnswer(name)
  const request = Number(query.get('request') ?? Number.NaN)
  return jsonAnswer(
    observatory.snapshot({
      place: query.get('place'),
      ...(Number.isSafeInteger(request) ? { request } : {}),
    }),
  )
}

async function isAllowed(
  request: IncomingMessage,
  { guard }: Pick<ResolvedInspectorOptions, 'guard'>,
): Promise<boolean> {
  if (guard === undefined) return true
  const patience = Deadline.after(guardPatience)
  try {
    const silence = new Promise<false>((resolve) => {
      patience.signal.addEventListener('abort', () => resolve(false), { once: true })
    })
    return (await Promise.race([guard(request), silence])) === true
  } catch {
    return false
  } finally {
    patience.settle()
  }
}
