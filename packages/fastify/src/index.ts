import { Readable } from 'node:stream'
import type { Deadline, Duration } from '@timebudget/core'
import {
  deadlineOf,
  openRequest,
  openRequestOf,
  type ResolvedServerOptions,
  resolveServerOptions,
  type ServerOptions,
} from '@timebudget/core/server'
import type {
  FastifyInstance,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
} from 'fastify'
import fastifyPlugin from 'fastify-plugin'

export type { ServerOptions }

/** A route's own, tighter budget: its length, or the options in full. */
export type RouteDeadline = Duration | ServerOptions

declare module 'fastify' {
  interface FastifyRequest {
    /** The moment at which this request must be answered. */
    readonly deadline: Deadline
  }
  interface FastifyContextConfig {
    /** A tighter budget for this route. */
    deadline?: RouteDeadline
  }
}

const plugin: FastifyPluginCallback<ServerOptions> = function deadlinePlugin(fastify, options, done) {
  try {
    install(fastify, resolveServerOptions(ownOptions(options)))
    done()
  } catch (error) {
    // thrown, it would be nobody's to catch
    done(error instanceof Error ? error : new Error(String(error)))
  }
}

function install(fastify: FastifyInstance, resolved: ResolvedServerOptions): void {
  const isOutermost = !fastify.hasRequestDecorator('deadline')
  const routes = new Map<RouteDeadline, ResolvedServerOptions>()

  if (isOutermost) {
    fastify.decorateRequest('deadline', {
      getter(this: FastifyRequest): Deadline {
        return deadlineOf(this.raw) as Deadline // set before any handler can ask
      },
    })
    fastify.addHook('onRoute', function readRouteDeadline({ config }) {
      if (config?.deadline !== undefined) routes.set(config.deadline, resolveRoute(config.deadline))
    })
  }

  fastify.addHook('onRequest', function openUnderDeadline(request, reply, next) {
    const open = openRequest(request.raw, reply.raw, resolved, { beforeAnswer: () => handOver(reply) })
    const route = isOutermost ? request.routeOptions.config.deadline : undefined
    if (open === undefined) return next()
    if (route !== undefined) open.tighten(routes.get(route) ?? resolveRoute(route))
    if (!open.answered) open.run(next)
  })

  if (resolved.ambient) {
    // @fastify/request-context, where it was there before us, brings its own async context back in here
    fastify.addHook('preValidation', reenter)
  }
}

function reenter(request: FastifyRequest, _reply: FastifyReply, next: HookHandlerDoneFunction): void {
  const open = openRequestOf(request.raw)
  if (open === undefined) next()
  else open.run(next)
}

/** Gives the bare response what Fastify keeps in its reply; what the reply says from now on is late. */
function handOver(reply: FastifyReply): void {
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
  reply.send = function sendLate(payload?: unknown): FastifyReply {
    if (payload instanceof Readable) payload.destroy()
    if (!(payload instanceof Error)) reply.raw.end() // which counts it
    return reply
  }
}

function resolveRoute(route: RouteDeadline): ResolvedServerOptions {
  return resolveServerOptions(typeof route === 'object' ? route : { default: route, max: route })
}

type ScopeOption = 'prefix' | 'logLevel' | 'logSerializers'

/** What Fastify itself reads of a plugin's options is not ours. */
function ownOptions(options: ServerOptions & Partial<Record<ScopeOption, unknown>>): ServerOptions {
  const { prefix: _prefix, logLevel: _logLevel, logSerializers: _logSerializers, ...own } = options
  return own
}

/**
 * Gives every request one deadline; again in an inner scope, or as a route's `config.deadline`, it tightens that.
 *
 *     await app.register(deadline, { default: '3s' })
 *     app.get('/quick', { config: { deadline: '300ms' } }, handler)
 *
 * Registering throws a TypeError that names the option which cannot be read.
 */
export const deadline: FastifyPluginCallback<ServerOptions> = fastifyPlugin(plugin, {
  name: '@timebudget/fastify',
  fastify: '5.x',
})

export default deadline
