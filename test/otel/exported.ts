/** The names of metrics that a text in Prometheus's format exports, each with the labels that any of its series has. */
export function exportedLabels(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const metrics = new Map<string, Set<string>>()
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^([a-z_]+)(?:\{(.*)\})? /i.exec(line) ?? []
    if (name === undefined) continue
    const known = metrics.get(name) ?? new Set()
    metrics.set(name, known)
    for (const [, label = ''] of labels.matchAll(/([a-z_]+)="/gi)) known.add(label)
  }
  return metrics
}

/** A metric that an expression selects, with the labels it is asked for. */
export interface Selected {
  readonly metric: RegExp
  readonly labels: readonly string[]
}

/** What an expression in Prometheus's language selects; the labels that are grouped by count for all metrics within. */
export function selectedBy(expression: string): readonly Selected[] {
  const groups = groupsOf(expression)
  // labels are no metrics; in their place blanks, so that all else stays where it is
  const rest = expression.replaceAll(/\bby \([^)]*\)/g, (group) => ' '.repeat(group.length))
  const named = rest.matchAll(/\b(?<name>(?:deadline|gen_ai)_[a-z_]+)(?=[{[)])(?:\{(?<matchers>[^}]*)\})?/g)
  const matched = rest.matchAll(/\{__name__=~"(?<name>[^"]*)"(?<matchers>[^}]*)\}/g)
  return [...named, ...matched].map(({ index, groups: found }) => ({
    metric: new RegExp(`^(${found?.['name'] ?? ''})$`),
    labels: [
      ...labelsIn(found?.['matchers'] ?? ''),
      ...groups.filter(({ from, to }) => index > from && index < to).flatMap(({ labels }) => labels),
    ],
  }))
}

interface Group {
  readonly labels: readonly string[]
  readonly from: number
  readonly to: number
}

/** What is grouped by which labels. */
function groupsOf(expression: string): readonly Group[] {
  return [...expression.matchAll(/\bby \(([^)]*)\) \(/g)].map(({ 0: text, 1: list = '', index }) => {
    const from = index + text.length
    let to = from
    for (let open = 1; open > 0 && to < expression.length; to += 1)
      if (expression[to] === '(') open += 1
      else if (expression[to] === ')') open -= 1
    const labels = list.split(/, ?/).filter((label) => label !== 'le' && !fromScraping.has(label))
    return { labels, from, to }
  })
}

/** What Prometheus adds itself. */
const fromScraping: ReadonlySet<string> = new Set(['job', 'instance'])

function labelsIn(matchers: string): string[] {
  const labels = [...matchers.matchAll(/([a-z_]+)(?:=~|!~|!=|=)"/g)].map(([, label = '']) => label)
  return labels.filter((label) => !fromScraping.has(label))
}

interface Panel {
  readonly title: string
  readonly targets?: ReadonlyArray<{ readonly expr: string }>
}

/** Every expression of a Grafana dashboard, with its panel's title; variables are filled in. */
export function expressionsOf(dashboard: {
  readonly panels: readonly Panel[]
}): ReadonlyArray<readonly [string, string]> {
  return dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(
      ({ expr }) => [title, expr.replaceAll('$job', '.*').replaceAll('$__rate_interval', '1m')] as const,
    ),
  )
}

/** Every expression of a file of rules, with its alert's name. */
export function expressionsOfRules(rules: string): ReadonlyArray<readonly [string, string]> {
  return rules
    .split(/^ +- alert: /m)
    .slice(1)
    .map((rule) => {
      const [, expression = ''] = /expr: (?:\|\n)?([\s\S]*?)\n +for:/.exec(rule) ?? []
      return [rule.slice(0, rule.indexOf('\n')), expression] as const
    })
}
