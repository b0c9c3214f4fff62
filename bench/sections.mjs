import { runCancellation } from './cancellation/cancellation.mjs'
import { runCore } from './core/core.mjs'
import { runTokens } from './llm/tokens.mjs'
import { runOutbound } from './outbound/outbound.mjs'
import { runOverload } from './overload/overload.mjs'
import { runQueue } from './queue/queue.mjs'
import { runRpc } from './rpc/rpc.mjs'
import { runHeld } from './server/held.mjs'
import { runHttp } from './server/http.mjs'
import { runStreams } from './sse/streams.mjs'

/** What can be measured; `everyNode`: on each Node, since that is what it depends on. */
export const sections = {
  server: { everyNode: true, run: runHttp },
  held: { everyNode: true, run: runHeld },
  rpc: { everyNode: true, run: runRpc },
  outbound: { everyNode: true, run: runOutbound },
  core: { everyNode: true, run: runCore },
  cancellation: { everyNode: false, run: runCancellation },
  overload: { everyNode: false, run: runOverload },
  queue: { everyNode: false, run: runQueue },
  tokens: { everyNode: false, run: runTokens },
  streams: { everyNode: false, run: runStreams },
}
