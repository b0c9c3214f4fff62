import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findProgram, requireOrSkip } from '../support/requirements.ts'
import { exportedLabels, expressionsOf, expressionsOfRules, selectedBy } from './exported.ts'
import { meteredService, type MeteredService, provokeEverything, sdkLines } from './metered-service.ts'
import { startPrometheus } from './prometheus-server.ts'

const dashboard = JSON.parse(
  readFileSync(new URL('../../packages/otel/dashboards/timebudget.json', import.meta.url), 'utf8'),
)
const rules = readFileSync(new URL('../../packages/otel/alerts/timebudget.yml', import.meta.url), 'utf8')
const panels = expressionsOf(dashboard)
const alerts = expressionsOfRules(rules)

let service: MeteredService
beforeAll(async () => {
  service = await meteredService()
  await provokeEverything(service)
}, 60_000)
afterAll(() => service.stop())

describe('the dashboard and the alert rules', () => {
  test('have every panel and rule that they promise', () => {
    const titles = dashboard.panels.map(({ title }: { title: string }) => title)
    for (const title of [
      'Requests by outcome',
      'Budget utilisation',
      'Remaining at arrival',
      'Overrun',
      'Operations, P50',
      'Operations, P95',
      'First token, P50 and P95',
      'First-token timeouts and stalls',
      'Degraded and partial share',
      'Cost per success',
      'Queue wait, P95',
      'Breaker states',
      'Retries, and why not',
      'Clock skew by peer',
      'Wasted work',
    ])
      expect(titles).toContain(title)
    expect(alerts.map(([name]) => name)).toEqual([
      'TimebudgetFirstTokenTimeouts',
      'TimebudgetStalls',
      'TimebudgetDegradedAnswers',
      'TimebudgetClockSkew',
      'TimebudgetWastedWork',
      'TimebudgetDeadlineBurn',
    ])
    for (const [, expression] of [...panels, ...alerts]) expect(selectedBy(expression)).not.toEqual([])
  })

  test.for(sdkLines)(
    'use no metric and no label that OpenTelemetry $line does not export',
    { timeout: 60_000 },
    async ({ start }, context) => {
      await using other = await start(context)
      await provokeEverything(other)
      const exported = exportedLabels(await other.metrics())
      const missing = [...panels, ...alerts].flatMap(([title, expression]) =>
        selectedBy(expression).flatMap(({ metric, labels }) => {
          const found = [...exported].filter(([name]) => metric.test(name))
          if (found.length === 0) return [`${title}: ${metric.source}`]
          const known = new Set(found.flatMap(([, each]) => [...each]))
          return labels
            .filter((label) => !known.has(label))
            .map((label) => `${title}: ${metric.source} has no ${label}`)
        }),
      )
      expect(missing).toEqual([])
    },
  )

  test('of panels, none is empty in Grafana once everything has happened', async (context) => {
    const program = requireOrSkip(context, findProgram('prometheus'), 'apt-get install prometheus')
    await using prometheus = await startPrometheus(program, { jobs: { chat: service.port } })
    const isScraped = async (metric: string, least: number): Promise<boolean> => {
      const [sample] = await prometheus.query(`max(count_over_time(${metric}[1m]))`)
      return sample !== undefined && sample.value >= least
    }
    const until = async (metric: string, least: number): Promise<void> => {
      while (!(await isScraped(metric, least))) await new Promise((resolve) => setTimeout(resolve, 100))
    }
    await until('deadline_requests_total', 2)
    await provokeEverything(service)
    const before =
      (await prometheus.query('max(count_over_time(deadline_requests_total[1m]))'))[0]?.value ?? 0
    await until('deadline_requests_total', before + 2)

    const empty: string[] = []
    for (const [title, expression] of panels) {
      const samples = await prometheus.query(expression)
      const [, labels = ''] = /\bby \(([^)]*)\)/.exec(expression) ?? []
      const grouped = labels.split(', ').filter((label) => label !== 'le' && label !== '')
      const shown = samples.filter(
        ({ metric, value }) =>
          Number.isFinite(value) && grouped.every((label) => metric[label] !== undefined),
      )
      if (shown.length === 0) empty.push(`${title}: ${expression}`)
    }
    expect(empty).toEqual([])
  }, 60_000)
})

describe('the dashboard', () => {
  test('asks for its data source, and names none', () => {
    const sources = new Set<string>(
      [...JSON.stringify(dashboard).matchAll(/"datasource":\{"type":"prometheus","uid":"([^"]*)"\}/g)].map(
        ([, uid = '']) => uid,
      ),
    )
    expect([...sources]).toEqual(['${datasource}'])
    expect(dashboard.templating.list[0]).toMatchObject({ name: 'datasource', type: 'datasource' })
  })

  test('can be imported: each panel has an id and a place of its own', () => {
    const ids = dashboard.panels.map(({ id }: { id: number }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const cells = new Set<string>()
    for (const { title, gridPos } of dashboard.panels) {
      expect([title, gridPos.x + gridPos.w <= 24]).toEqual([title, true])
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect([title, cells.has(`${x} ${y}`)]).toEqual([title, false])
          cells.add(`${x} ${y}`)
        }
    }
    for (const panel of dashboard.panels) if (panel.type !== 'row') expect(panel.description).not.toBe('')
  })
})
