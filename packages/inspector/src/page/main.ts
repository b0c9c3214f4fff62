import { find, make, setText } from './dom.ts'
import { type Filter, matches } from './filter.ts'
import { count } from './format.ts'
import { Model } from './model.ts'
import { renderModels } from './models-panel.ts'
import { renderOperations } from './operations-panel.ts'
import { allOutcomes, nameOf } from './outcomes.ts'
import { type Connection, Poll } from './poll.ts'
import { RequestDetail } from './request-detail.ts'
import { RequestList } from './request-list.ts'
import { renderService } from './service-panel.ts'
import { Tabs } from './tabs.ts'
import { startTheme } from './theme.ts'

/** What runs is drawn anew this often, in milliseconds, also where nothing new has come. */
const tick = 100

const model = new Model()
const text = find('filter-text', HTMLInputElement)
const outcome = find('filter-outcome', HTMLSelectElement)
const slower = find('filter-slower', HTMLInputElement)
const inFlight = find('filter-flight', HTMLInputElement)
const fit = find('fit', HTMLSelectElement)
const listed = find('listed', HTMLOutputElement)
const empty = find('empty', HTMLParagraphElement)
const barsTitle = find('bars-title', HTMLSpanElement)
const connection = find('connection', HTMLParagraphElement)
const pause = find('pause', HTMLButtonElement)

const waiting =
  'Waiting for requests. Those that this process handles under deadline() are listed here as they come.'

let selected: number | undefined
let isScheduled = false
let isFresh = false

for (const each of allOutcomes) {
  const option = make('option', '', nameOf(each))
  option.value = each
  outcome.append(option)
}

const list = new RequestList({
  select(id) {
    if (id !== selected && id !== undefined) queueMicrotask(() => poll.hurry())
    selected = id
    schedule()
  },
  scrolled: schedule,
})
const detail = new RequestDetail({
  close() {
    selected = undefined
    list.focus()
    schedule()
  },
  redraw: schedule,
})
const tabs = new Tabs(() => {
  isFresh = true
  schedule()
})
startTheme(find('theme', HTMLButtonElement))

const poll = new Poll({
  get place() {
    return model.latest?.place
  },
  get request() {
    return selected
  },
  received(snapshot) {
    if (poll.paused) model.applyWhole(snapshot)
    else model.apply(snapshot, performance.now())
    isFresh = true
    schedule()
  },
  changed: showConnection,
})

const filters = find('filters', HTMLFormElement)
filters.addEventListener('input', schedule)
filters.addEventListener('submit', (event) => event.preventDefault())
pause.addEventListener('click', () => {
  if (poll.paused) poll.resume()
  else poll.pause()
  pause.setAttribute('aria-pressed', String(poll.paused))
  setText(pause, poll.paused ? 'Resume' : 'Pause')
})
addEventListener('resize', schedule)
setInterval(() => {
  const isRunning = (model.latest?.counts.running ?? 0) > 0
  if (isRunning && !poll.paused && !document.hidden) schedule()
}, tick)
poll.resume()

/** Draws once before the next frame, however much has happened until then. */
function schedule(): void {
  if (isScheduled) return
  isScheduled = true
  requestAnimationFrame(() => {
    isScheduled = false
    render()
  })
}

function render(): void {
  const snapshot = model.latest
  if (snapshot === undefined) return
  const { view } = tabs
  if (view === 'requests') renderRequests(model.now(poll.paused ? model.receivedAt : performance.now()))
  else if (isFresh) {
    if (view === 'operations') renderOperations(snapshot)
    else if (view === 'models') renderModels(snapshot)
    else renderService(snapshot)
  }
  isFresh = false
}

function renderRequests(now: number): void {
  const filter = currentFilter()
  const all = model.requests()
  const requests = all.filter((request) => matches(request, filter, now))
  const isBudget = fit.value !== 'time'
  list.render({ requests, selected, now, fit: isBudget ? 'budget' : 'time' })
  detail.render(model.whole(selected), now)
  document.body.classList.toggle('fit-time', !isBudget)
  setText(barsTitle, isBudget ? 'Share of the budget' : 'Share of the time')
  const { running = 0, unlisted = 0 } = model.latest?.counts ?? {}
  const more = unlisted > 0 ? `, ${count(unlisted)} not listed` : ''
  setText(listed, `${count(requests.length)} of ${count(all.length)} · ${count(running)} in flight${more}`)
  empty.hidden = requests.length > 0
  setText(empty, all.length === 0 ? waiting : 'No request passes the filter.')
}

function currentFilter(): Filter {
  return {
    text: text.value.trim(),
    outcome: outcome.value,
    slowerThan: Math.max(0, slower.valueAsNumber || 0),
    inFlight: inFlight.checked,
  }
}

function showConnection(now: Connection): void {
  const words: Readonly<Record<Connection, string>> = {
    live: 'live',
    lost: 'server away, trying again',
    refused: 'not allowed here',
    paused: 'paused',
  }
  setText(connection, words[now])
  connection.className = `connection ${now}`
}
