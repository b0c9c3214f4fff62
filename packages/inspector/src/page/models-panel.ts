import type { ModelFigures, ModelView, Snapshot } from '../snapshot.ts'
import { find, make } from './dom.ts'
import { count, duration, money, percent } from './format.ts'
import { type Column, card, figure, outcomeShares, table } from './tables.ts'

const columns: readonly Column<ModelView>[] = [
  { title: 'Model', show: ({ provider, model }) => (model === '' ? provider : `${model} (${provider})`) },
  { title: 'Calls', number: true, show: (row) => count(row.calls) },
  { title: 'First token P50', number: true, show: ({ firstTokenP50 }) => duration(firstTokenP50) },
  { title: 'P95', number: true, show: ({ firstTokenP95 }) => duration(firstTokenP95) },
  { title: 'Tokens in', number: true, show: ({ inputTokens }) => count(inputTokens) },
  { title: 'Tokens out', number: true, show: ({ outputTokens }) => count(outputTokens) },
  { title: 'Outcomes', show: ({ outcomes }) => outcomeShares(outcomes) },
]

/** How answers by models are doing, where `@timebudget/llm` is used. */
export function renderModels({ models }: Snapshot): void {
  const panel = find('panel-models', HTMLElement)
  if (models === null) {
    panel.replaceChildren(make('p', 'empty', 'No model has been called through @timebudget/llm yet.'))
    return
  }
  panel.replaceChildren(
    card(
      'Answers by models',
      make('dl', 'big-figures', ...fourFigures(models)),
      make('p', 'quiet', inWords(models)),
    ),
    card('Calls by model', table('Calls by model', columns, models.models)),
  )
}

function fourFigures(models: ModelFigures): HTMLElement[] {
  const [cost] = models.costs
  return [
    figure(
      'First-token timeouts',
      percent(models.firstTokenTimeoutRate),
      `of ${count(models.calls)} calls: time was up before it`,
    ),
    figure('Stalls', percent(models.stallRate), 'fell silent after their beginning'),
    figure('Degraded', percent(models.degradedShare), 'of the answers: by a later rung, or cut off'),
    figure(
      'Cost per success',
      cost === undefined ? '–' : money(cost.perSuccess, cost.currency),
      cost === undefined ? 'no price is known' : costNote(models),
    ),
  ]
}

function costNote({ costs }: ModelFigures): string {
  return costs
    .map(
      ({ spent, currency, estimated }) =>
        `${money(spent, currency)} in all${estimated ? ', partly estimated' : ''}`,
    )
    .join('; ')
}

function inWords(models: ModelFigures): string {
  return [
    `${count(models.questions)} questions`,
    `${percent(models.mainSuccess)} answered by the first rung`,
    `${percent(models.degradedSuccess)} by a later one`,
    `${percent(models.partialShare)} of the answers cut off`,
    `${count(models.abandoned)} left by their user`,
    `first token P95 ${duration(models.firstTokenP95)}`,
  ].join(' · ')
}
