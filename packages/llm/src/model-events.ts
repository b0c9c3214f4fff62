import type { Usage } from './usage.ts'

/** What a model says, piece by piece, whoever the provider is. */
export type ModelEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | ToolEvent
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: string }

/** A piece of a tool call; `id` and `name` come with its first piece. */
export interface ToolEvent {
  readonly type: 'tool'
  /** Which of the answer's tool calls it belongs to. */
  readonly index: number
  readonly id?: string | undefined
  readonly name?: string | undefined
  /** A piece of the arguments' JSON. */
  readonly arguments: string
}

/** What somebody waits for: its first one ends the wait for the first token. */
export type ContentEvent = Extract<ModelEvent, { type: 'text' | 'reasoning' | 'tool' }>

export function isContent(event: ModelEvent): event is ContentEvent {
  return event.type === 'text' || event.type === 'reasoning' || event.type === 'tool'
}
