import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files, and folders of them, that take longer than ten seconds, the longest first as far as those that keep a core busy (a
 * browser, a compiler) have others that mostly wait between them.
 */
export const longest: readonly string[] = [
  'test/packed/packed.test.ts',
  'test/chain/deadline-chain.test.ts',
  'test/cli/probe.test.ts',
  'examples/chat-express/test/chat-page-faults.test.ts',
  'examples/recipes/test/',
  'test/chain/client-leaves.test.ts',
  'packages/inspector/test/page.test.ts',
  'test/cli/doctor.test.ts',
  'test/otel/propagation-cases.test.ts',
  'packages/sse/test/redis.test.ts',
  'examples/chat-express/test/chat-page-access.test.ts',
  'test/faults/unplugged-hops.test.ts',
  'test/otel/chain.test.ts',
  'packages/llm/test/sdk-contract.test.ts',
  'examples/chat-express/test/chat-page.test.ts',
  'packages/clients/test/nodes.test.ts',
  'test/soak/soak.test.ts',
  'packages/llm/test/providers.test.ts',
  'test/chat/chat-examples.test.ts',
  'packages/clients/test/undici-contract.test.ts',
  'test/otel/start.test.ts',
  'packages/sse/test/browser.test.ts',
  'packages/clients/test/fetch-contract.test.ts',
  'test/faults/',
  'test/matrix/matrix.test.ts',
  'examples/rag-chain/test/chain.test.ts',
  'test/otel/',
  'packages/llm/test/newer-sdks.test.ts',
  'packages/llm/test/newer-providers.test.ts',
  'packages/express/test/express4.test.ts',
  'packages/express/test/express5.test.ts',
  'packages/fastify/test/fastify-http2.test.ts',
  'packages/fastify/test/fastify.test.ts',
  'packages/koa/test/koa-http2.test.ts',
]

/** Where a file of tests, by its path from the root, stands in the order; what is not known to be long comes last. */
export function rankOf(path: string): number {
  const rank = longest.findIndex((start) => path.startsWith(start))
  return rank === -1 ? longest.length : rank
}

/**
 * Starts the files that take long first: one that starts last keeps one core at work and leaves the other idle. Vitest
 * itself does so only where it remembers an earlier run.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const rank = ({ moduleId }: TestSpecification): number =>
      rankOf(relative(this.ctx.config.root, moduleId).replaceAll('\\', '/'))
    return sorted.toSorted((one, other) => rank(one) - rank(other))
  }
}
