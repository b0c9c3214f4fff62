/** How an answer ended, for the page. */
export type ChatOutcome =
  | 'done'
  | 'stopped'
  /** No first token within its limit. */
  | 'first_token'
  /** No more of the answer for too long, or no sign of life from the server either. */
  | 'stalled'
  /** Longer in all than its limit. */
  | 'total'
  /** The server's time was up. */
  | 'deadline'
  /** The stream broke off, and could not be taken up again. */
  | 'interrupted'
  /** The server says that it could not go on. */
  | 'failed'
  /** Another answer than a stream: 401, 503, ... */
  | 'http_error'

/** What people are told; `done` has nothing to tell. */
export type Messages = Readonly<Record<Exclude<ChatOutcome, 'done'>, string>>

/** The languages that messages come in. */
export const messages: Readonly<Record<'en' | 'zh', Messages>> = {
  en: {
    stopped: 'Stopped.',
    first_token: 'The answer is taking too long to start. Please try again.',
    stalled: 'The answer has stalled. What has arrived is kept.',
    total: 'Time is up. What has arrived is kept.',
    deadline: 'Time is up. What has arrived is kept.',
    interrupted: 'The connection was lost. What has arrived is kept.',
    failed: 'Something went wrong. Please try again.',
    http_error: 'The service cannot be reached. Please try again.',
  },
  zh: {
    stopped: '已停止。',
    first_token: '迟迟没有开始回答，请重试。',
    stalled: '回答中断，已收到的内容已保留。',
    total: '时间已到，已收到的内容已保留。',
    deadline: '时间已到，已收到的内容已保留。',
    interrupted: '连接中断，已收到的内容已保留。',
    failed: '出错了，请重试。',
    http_error: '无法连接服务，请重试。',
  },
}
