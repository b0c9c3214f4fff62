import { type Chat, streamChat } from '@timebudget/sse/browser'
import { BudgetBar } from './budget-bar.ts'
import { part } from './parts.ts'
import { Turn } from './turn.ts'
import { language, words } from './words.ts'

const composer = part(document, '#composer', HTMLFormElement)
const question = part(document, '#question', HTMLTextAreaElement)
const send = part(document, '#send', HTMLButtonElement)
const stop = part(document, '#stop', HTMLButtonElement)
const turns = part(document, '#turns', HTMLElement)
const keys = part(document, '#keys', HTMLElement)
const announcement = part(document, '#announcement', HTMLElement)
const budgetBar = new BudgetBar(part(document, '#time', HTMLElement), part(document, '#left', HTMLElement))

const limit = (name: string): number => Number(composer.dataset[name])
const budget = limit('budget')
let running: Chat | undefined
let latest: Turn | undefined

function ask(turn: Turn): void {
  if (running !== undefined) return
  if (latest !== turn) latest?.keep()
  latest = turn
  turn.begin()
  showRunning(true)
  announcement.textContent = words.thinking
  const chat = streamChat({
    url: '/chat',
    body: { question: turn.question },
    budget,
    firstToken: limit('firstToken'),
    idle: { content: limit('content'), transport: limit('transport') },
    onThinking({ remaining }) {
      turn.think()
      if (remaining !== undefined) budgetBar.correct(remaining)
    },
    onToken(piece, { type = 'text' }) {
      if (type === 'text') followingEnd(() => turn.add(piece))
    },
    onReconnect: () => turn.reconnect(),
  })
  running = chat
  void chat.ended.then((end) => {
    running = undefined
    followingEnd(() => (announcement.textContent = turn.end(end)))
    showRunning(false)
  })
}

function askAgain(turn: Turn): void {
  ask(turn)
  stop.focus()
}

/** The two buttons share a place: who used the one by keyboard is not to lose it. */
function showRunning(isRunning: boolean): void {
  const hadFocus = document.activeElement === (isRunning ? send : stop)
  send.hidden = isRunning
  stop.hidden = !isRunning
  if (hadFocus) (isRunning ? stop : question).focus()
  keys.textContent = isRunning ? words.stopHint : words.sendHint
  if (isRunning) budgetBar.start(budget)
  else budgetBar.stop()
}

/** Keeps the end in sight of those who look at it, and leaves those alone who read further up. */
function followingEnd(change: () => void): void {
  const { scrollHeight, scrollTop, clientHeight } = document.documentElement
  const isAtEnd = scrollHeight - scrollTop - clientHeight < 80
  change()
  if (isAtEnd) scrollTo({ top: document.documentElement.scrollHeight })
}

composer.onsubmit = (event) => {
  event.preventDefault()
  const text = question.value.trim()
  if (text === '' || running !== undefined) return
  question.value = ''
  const turn = new Turn(text, { onRetry: askAgain, onKeep: () => question.focus() })
  turns.append(turn.element)
  ask(turn)
  turn.element.scrollIntoView({ block: 'start' })
}
question.onkeydown = (event) => {
  // Enter also ends the choice of a Chinese character: that one sends nothing
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  composer.requestSubmit()
}
document.onkeydown = ({ key }) => {
  if (key === 'Escape') running?.stop()
}
stop.onclick = () => running?.stop()
// closing the tab is stopping, while a connection that is lost is not
addEventListener('pagehide', () => running?.stop())

document.documentElement.lang = language === 'zh' ? 'zh-Hans' : 'en'
for (const root of [document, part(document, '#turn', HTMLTemplateElement).content]) {
  for (const element of root.querySelectorAll<HTMLElement>('[data-word]')) {
    element.textContent = wordOf(element.dataset['word'])
  }
  for (const element of root.querySelectorAll<HTMLElement>('[data-label]')) {
    element.ariaLabel = wordOf(element.dataset['label'])
  }
}
part(document, '#promise', HTMLElement).textContent = words.promise(budget / 1_000)
part(document, '#time', HTMLElement).ariaLabel = words.timeLeft(budget / 1_000)
keys.textContent = words.sendHint
question.placeholder = words.placeholder

function wordOf(name = ''): string {
  const word = new Map<string, unknown>(Object.entries(words)).get(name)
  return typeof word === 'string' ? word : name
}
