/**
 * Files of tests that a process runs one after the other, which spares each the start of one of its own: two thirds of what
 * such a file costs. They leave nothing behind, no listener, no timer, nothing global, and measure no time of what earlier
 * files have compiled. A hook that a module of theirs sets up on import runs for the first of them alone, so that they
 * import none.
 */
export const sharingAProcess: readonly string[] = [
  'packages/cli/test/*.test.ts',
  'packages/core/test/{ambient,deadline,duration,errors,first-operation,learned-floor,ledger}.test.ts',
  'packages/core/test/{misspelt-options,operation,start-operation,watcher}.test.ts',
  'packages/core/test/server/{open-call,options}.test.ts',
  'packages/core/test/wire/{attempt,clocks,codecs,encode,hosts,properties}.test.ts',
  'packages/{express,fastify,koa}/test/types.test.ts',
  'packages/inspector/test/{page-parts,recent-map}.test.ts',
  'packages/llm/test/{cost-meter,figures,prices,profiles,protocols,retry-after,stream-governor}.test.ts',
  'packages/otel/test/{hostile-baggage,propagation-asker}.test.ts',
  'packages/resilience/test/{breaker,breaker-probe,hedge,wait}.test.ts',
  'packages/resilience/test/{deadline-queue,deadline-queue-ends,deadline-queue-laws,queue-line}.test.ts',
  'packages/resilience/test/floor-{cap,doubts,recovery}.test.ts',
  'packages/resilience/test/{retry,retry-budget,retry-cancelled,retry-pushback,retry-verdict}.test.ts',
  'packages/sse/test/{heartbeats,parsing,size}.test.ts',
  'test/docs/{embedded,figures,links,names}.test.ts',
  'test/{longest-first,sources,vectors}.test.ts',
]
