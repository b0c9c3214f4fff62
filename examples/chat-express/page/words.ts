/** What the page says beside the answers; how they end is said by `@timebudget/sse/browser`. */
export interface Words {
  readonly title: string
  promise(seconds: number): string
  readonly question: string
  readonly placeholder: string
  readonly send: string
  readonly stop: string
  readonly sendHint: string
  readonly stopHint: string
  timeLeft(seconds: number): string
  readonly thinking: string
  readonly reconnecting: string
  readonly complete: string
  readonly incomplete: string
  readonly backup: string
  readonly brokeOff: string
  readonly keep: string
  readonly retry: string
}

const en: Words = {
  title: 'What would you like to know?',
  promise: (seconds) =>
    `Every answer is here within ${seconds} seconds. Where the best model cannot make it, another one steps in.`,
  question: 'Your question',
  placeholder: 'Ask anything',
  send: 'Send',
  stop: 'Stop',
  sendHint: 'Enter to send, Shift + Enter for a new line',
  stopHint: 'Esc to stop',
  timeLeft: (seconds) => `${seconds} s left`,
  thinking: 'Thinking',
  reconnecting: 'Connection lost. Reconnecting',
  complete: 'The answer is complete.',
  incomplete: 'Incomplete',
  backup: 'Backup answer',
  brokeOff: 'The model broke off. What has arrived is kept.',
  keep: 'Keep it',
  retry: 'Ask again',
}

const zh: Words = {
  title: '想了解什么？',
  promise: (seconds) => `每个回答都会在 ${seconds} 秒内送达。首选模型来不及时，会由备用模型回答。`,
  question: '你的问题',
  placeholder: '请输入问题',
  send: '发送',
  stop: '停止',
  sendHint: '按 Enter 发送，Shift + Enter 换行',
  stopHint: '按 Esc 停止',
  timeLeft: (seconds) => `剩余 ${seconds} 秒`,
  thinking: '正在思考',
  reconnecting: '连接中断，正在重新连接',
  complete: '回答完毕。',
  incomplete: '不完整',
  backup: '备用回答',
  brokeOff: '模型中途停止，已收到的内容已保留。',
  keep: '保留',
  retry: '重新提问',
}

export const language: 'en' | 'zh' = navigator.language.startsWith('zh') ? 'zh' : 'en'
export const words: Words = { en, zh }[language]
