import { type Asked, type Dialect, event, textOf, type Token, toolNameOf } from './dialect.ts'
import { openaiErrorBody } from './openai-chat-dialect.ts'
import type { TokenCounts } from './script.ts'

interface OpenItem {
  readonly kind: Token['kind']
  readonly index: number
  readonly name: string | undefined
  text: string
}

/** OpenAI's responses. */
export function openaiResponsesDialect({ model }: Asked): Dialect {
  let sequence = 0
  let open: OpenItem | undefined
  let items = 0
  const done: object[] = []

  const send = (type: string, fields: object): string => {
    const text = event({ type, sequence_number: sequence, ...fields }, type)
    sequence += 1
    return text
  }
  const start = ({ kind, name }: Token): string => {
    open = { kind, index: items, name, text: '' }
    items += 1
    const added = send('response.output_item.added', {
      output_index: open.index,
      item: itemOf(open, 'in_progress'),
    })
    return added + (kind === 'tool' ? '' : send(partEvent(kind, 'added'), partOf(open)))
  }
  const finish = (): string => {
    if (open === undefined) return ''
    const item = open
    open = undefined
    done.push(itemOf(item, 'completed'))
    const place = { item_id: idOf(item), output_index: item.index }
    const ended =
      item.kind === 'tool'
        ? send('response.function_call_arguments.done', { ...place, arguments: item.text })
        : send(deltaEvent(item.kind).replace('.delta', '.done'), { ...partPlace(item), text: item.text }) +
          send(partEvent(item.kind, 'done'), partOf(item))
    return ended + send('response.output_item.done', { output_index: item.index, item: done.at(-1) })
  }
  const response = (status: string, counts?: TokenCounts): object => ({
    response: responseOf(model, { status, output: [...done], counts }),
  })
  return {
    open: () =>
      send('response.created', response('in_progress')) +
      send('response.in_progress', response('in_progress')),
    token(token) {
      const before = open?.kind === token.kind && token.name === undefined ? '' : finish() + start(token)
      if (open === undefined) return before
      open.text += token.text
      return before + send(deltaEvent(token.kind), { ...partPlace(open), delta: token.text })
    },
    empty() {
      const before = open?.kind === 'text' ? '' : finish() + start({ kind: 'text', text: '' })
      return open === undefined
        ? before
        : before + send(deltaEvent('text'), { ...partPlace(open), delta: '' })
    },
    keepAlive: () => send('keepalive', {}),
    failure: ({ message, code }) => send('error', { code: code ?? 'server_error', message, param: null }),
    close: (counts) => finish() + send('response.completed', response('completed', counts)),
    whole(tokens, counts) {
      const output = (['reasoning', 'text', 'tool'] as const)
        .filter((kind) => tokens.some((token) => token.kind === kind))
        .map((kind, index) =>
          itemOf({ kind, index, name: toolNameOf(tokens), text: textOf(tokens, kind) }, 'completed'),
        )
      return responseOf(model, { status: 'completed', output, counts })
    },
    errorBody: openaiErrorBody,
  }
}

function deltaEvent(kind: Token['kind']): string {
  if (kind === 'tool') return 'response.function_call_arguments.delta'
  return kind === 'text' ? 'response.output_text.delta' : 'response.reasoning_summary_text.delta'
}

function partEvent(kind: Token['kind'], what: 'added' | 'done'): string {
  return kind === 'text' ? `response.content_part.${what}` : `response.reasoning_summary_part.${what}`
}

function idOf({ kind, index }: OpenItem): string {
  return `${kind === 'text' ? 'msg' : kind === 'reasoning' ? 'rs' : 'fc'}_local_${index}`
}

function partPlace(item: OpenItem): object {
  const place = { item_id: idOf(item), output_index: item.index }
  if (item.kind === 'tool') return place
  return item.kind === 'text' ? { ...place, content_index: 0, logprobs: [] } : { ...place, summary_index: 0 }
}

function partOf(item: OpenItem): object {
  const part =
    item.kind === 'text'
      ? { type: 'output_text', text: item.text, annotations: [], logprobs: [] }
      : { type: 'summary_text', text: item.text }
  return { ...partPlace(item), part }
}

function itemOf(item: OpenItem, status: 'in_progress' | 'completed'): object {
  const id = idOf(item)
  const { kind, name, text } = item
  if (kind === 'tool')
    return { id, type: 'function_call', status, call_id: 'call_local', name, arguments: text }
  if (kind === 'reasoning')
    return { id, type: 'reasoning', summary: text === '' ? [] : [{ type: 'summary_text', text }] }
  const part = { type: 'output_text', text, annotations: [], logprobs: [] }
  return { id, type: 'message', status, role: 'assistant', content: text === '' ? [] : [part] }
}

function responseOf(
  model: string,
  {
    status,
    output,
    counts,
  }: {
    readonly status: string
    readonly output: readonly object[]
    readonly counts: TokenCounts | undefined
  },
): object {
  return {
    id: 'resp_local',
    object: 'response',
    created_at: 1_760_000_000,
    status,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model,
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    usage: counts === undefined ? null : usageOf(counts),
    user: null,
    metadata: {},
  }
}

function usageOf({ input, output, cached, reasoning }: TokenCounts): object {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  }
}
