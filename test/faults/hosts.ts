import type { Host } from '../../packages/core/test/server/host.ts'
import { nodeHttp } from '../../packages/core/test/server/node-http.ts'
import { express5Host } from '../../packages/express/test/hosts.ts'
import { fastifyHost } from '../../packages/fastify/test/hosts.ts'
import { koa3Host } from '../../packages/koa/test/hosts.ts'

/** The frameworks, and Node alone, as the adapters' own tests run them. */
export const hosts: readonly Host[] = [nodeHttp, express5Host, koa3Host, fastifyHost]
