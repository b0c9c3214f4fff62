import { listOf, objectOf, textOf } from './protocols/json.ts'
import { protocolOf } from './protocols/which.ts'

/** What frames an answer in the streams of the AI SDK, and in ours. */
const framing: ReadonlySet<string> = new Set([
  'start',
  'start-step',
  'stream-start',
  'response-metadata',
  'text-start',
  'text-end',
  'reasoning-start',
  'reasoning-end',
  'tool-input-start',
  'tool-input-end',
  'finish-step',
  'finish',
  'usage',
  'ping',
  'keepalive',
])

/** Whether an item of a stream holds what somebody waits for; of items that nobody knows, each does. */
export function isContentItem(item: unknown): boolean {
  if (typeof item === 'string') return item !== ''
  if (ArrayBuffer.isView(item)) return item.byteLength > 0
  const protocol = protocolOf(item)
  if (protocol !== undefined) return protocol.readEvent(item).kind !== 'nothing'
  const { type, content, tool_call_chunks: toolCalls, additional_kwargs: more } = objectOf(item)
  // a chunk of LangChain's
  if (Array.isArray(toolCalls)) {
    const reasoning = textOf(objectOf(more)['reasoning_content'])
    return (
      textOf(content) !== undefined ||
      listOf(content).length > 0 ||
      toolCalls.length > 0 ||
      reasoning !== undefined
    )
  }
  return !(typeof type === 'string' && framing.has(type))
}

/** Bytes of an item, or about; 0 for objects. */
export function sizeOf(item: unknown): number {
  if (typeof item === 'string') return item.length
  return ArrayBuffer.isView(item) ? item.byteLength : 0
}
