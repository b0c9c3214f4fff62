import { type ChatOutcome, messages as allMessages, type Messages } from './messages.ts'

/** How an answer has ended. */
export interface ChatEnd {
  readonly outcome: ChatOutcome
  /** All text that came, also where the answer is not complete. */
  readonly text: string
  /** For people; empty when it is done. */
  readonly message: string
  /** The server's code of an error, such as `DEADLINE_EXCEEDED`. */
  readonly code?: string | undefined
  readonly status?: number | undefined
  /** Data of the last event, or of an answer that was no stream. */
  readonly data?: unknown
}

/** An end before it is put into words. */
export type Ending = Omit<ChatEnd, 'text' | 'message'>

/** The members of an event's data; none, where that is no object. */
export type Fields = Readonly<Record<string, unknown>>

/** What an `error` event comes to: of one that is answered with 504 elsewhere, somebody's time was up. */
export function failureOf(data: Fields): Ending {
  const code = codeOf(data)
  const isLate = data['status'] === 504
  return { outcome: isLate ? 'deadline' : code === 'CANCELLED' ? 'stopped' : 'failed', code, data }
}

/** What an answer that is no stream comes to; one that was to be taken up again, and is gone, stays interrupted. */
export async function refusalOf(
  response: Response,
  { isResumed }: { readonly isResumed: boolean },
): Promise<Ending> {
  const { status, headers } = response
  const data = parseData(await response.text().catch(() => ''))
  const isLate = status === 504 && headers.has('x-deadline-outcome')
  const outcome = isResumed ? 'interrupted' : isLate ? 'deadline' : 'http_error'
  return { outcome, status, code: codeOf(fieldsOf(data)), data }
}

/** The message for people: the page's own, else ours in the browser's language. */
export function messageFor(
  outcome: ChatOutcome,
  { language, messages }: { language?: 'en' | 'zh' | undefined; messages?: Partial<Messages> | undefined },
): string {
  if (outcome === 'done') return ''
  return messages?.[outcome] ?? allMessages[language ?? preferred()][outcome]
}

/** JSON, else the text itself. */
export function parseData(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export function fieldsOf(data: unknown): Fields {
  return Object(data) as Fields
}

function codeOf({ code }: Fields): string | undefined {
  return typeof code === 'string' ? code : undefined
}

function preferred(): 'en' | 'zh' {
  const { navigator } = globalThis as { navigator?: { language?: string } }
  return (navigator?.language ?? '').startsWith('zh') ? 'zh' : 'en'
}
