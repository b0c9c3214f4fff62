import { ChatRun } from './chat-run.ts'
import type { Duration } from './duration.ts'
import type { ChatEnd, Fields } from './ending.ts'
import type { Messages } from './messages.ts'

/** What is known while the assistant thinks; milliseconds. */
export interface Thinking {
  readonly elapsed: number
  /** What is left of the server's time. */
  readonly remaining?: number | undefined
  /** A piece of its reasoning. */
  readonly text?: string | undefined
}

/** What `streamChat()` takes. */
export interface ChatOptions {
  readonly url: string
  /** Sent as JSON, once: whatever happens, there is no second POST. */
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** `'same-origin'` */
  readonly credentials?: 'omit' | 'same-origin' | 'include' | undefined
  /** What the server may take, told to it as its deadline; `'60s'`. */
  readonly budget?: Duration | undefined
  /** The wait for the first token; `'15s'`. */
  readonly firstToken?: Duration | undefined
  /**
   * The longest silence once the answer has begun; or apart for its pieces, reasoning included, and for anything that
   * arrives, heartbeats included: `{ content: '30s', transport: '10s' }`.
   */
  readonly idle?: Duration | { readonly content: Duration; readonly transport: Duration } | undefined
  /** All in all; the budget and a second, so that the server's last word still arrives. */
  readonly total?: Duration | undefined
  /** The language of messages; that of the browser. */
  readonly language?: 'en' | 'zh' | undefined
  /** Messages of your own in place of ours. */
  readonly messages?: Partial<Messages> | undefined
  readonly onThinking?: ((thinking: Thinking) => void) | undefined
  /** A piece of the answer; `data` is all that the server says of it. */
  readonly onToken?: ((text: string, data: Fields) => void) | undefined
  /** Events of your own. */
  readonly onEvent?: ((event: string, data: unknown) => void) | undefined
  /** The connection was lost, and is sought again. */
  readonly onReconnect?: (() => void) | undefined
  readonly onDone?: ((end: ChatEnd) => void) | undefined
  /** Every other end: stopped, too late, interrupted, failed. */
  readonly onError?: ((end: ChatEnd) => void) | undefined
}

/** An answer that is on its way. */
export interface Chat {
  /** What has come so far. */
  readonly text: string
  /** Never rejects. */
  readonly ended: Promise<ChatEnd>
  /** Ends it, here and at the server; the text is kept. */
  readonly stop: () => void
}

/**
 * Asks once, and reads the answer as it comes. A stream that the server keeps is taken up again when its connection is
 * lost, by GET and never by another POST.
 *
 *     const chat = streamChat({ url: '/chat', body: { prompt }, onToken: (text) => output.append(text) })
 *
 * @throws TypeError that names the option which cannot be read, or when the body is no JSON.
 */
export function streamChat(options: ChatOptions): Chat {
  return new ChatRun(options)
}
