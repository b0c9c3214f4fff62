export { type Chat, type ChatOptions, streamChat, type Thinking } from './stream-chat.ts'
export type { ChatEnd, Fields } from './ending.ts'
export { type ChatOutcome, messages, type Messages } from './messages.ts'
export type { Duration } from './duration.ts'
