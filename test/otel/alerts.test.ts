import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { findProgram, requireOrSkip } from '../support/requirements.ts'
import { expressionsOfRules } from './exported.ts'
import { meteredService, type MeteredService } from './metered-service.ts'
import { type Alert, startPrometheus } from './prometheus-server.ts'

const file = new URL('../../packages/otel/alerts/timebudget.yml', import.meta.url)
const rules = readFileSync(file, 'utf8')
const names = expressionsOfRules(rules).map(([name]) => name)

describe('the alert rules', () => {
  test('are rules to Prometheus', (context) => {
    const promtool = requireOrSkip(context, findProgram('promtool'), 'apt-get install prometheus')
    const said = execFileSync(promtool, ['check', 'rules', fileURLToPath(file)], { encoding: 'utf8' })
    expect(said).toMatch(/6 rules found/)
  })

  test('each say what is wrong and where to read what to do', () => {
    const docs = readFileSync(new URL('../../docs/telemetry.md', import.meta.url), 'utf8')
    const anchors = [...docs.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^a-z0-9 -]/g, '')
        .replaceAll(' ', '-'),
    )
    const books = [...rules.matchAll(/runbook_url: docs\/telemetry\.md#(.*)$/gm)].map(([, anchor]) => anchor)
    expect(books).toHaveLength(names.length)
    for (const anchor of books) expect(anchors).toContain(anchor)
    expect([...rules.matchAll(/^ +summary: /gm)]).toHaveLength(names.length)
  })

  test('fire each on its fault, and none of them for a service that is well', async (context) => {
    const program = requireOrSkip(context, findProgram('prometheus'), 'apt-get install prometheus')
    await using well = await meteredService()
    await using ill = await meteredService()
    // the first call of a process is slow, and would be taken for a clock that is off
    for (let call = 0; call < 6; call += 1) await Promise.all([well.call('/next'), ill.call('/quote')])
    await using prometheus = await startPrometheus(program, {
      jobs: { well: well.port, ill: ill.port },
      rules: hurried(rules),
    })
    const traffic = new AbortController()
    const running = [
      repeat(traffic.signal, () => healthy(well)),
      repeat(traffic.signal, () => healthy(ill)),
      repeat(traffic.signal, () => faulty(ill)),
    ]
    const seen = new Map<string, Alert>()
    const strangers: Alert[] = []
    const until = performance.now() + 60_000
    while (seen.size < names.length && performance.now() < until) {
      for (const alert of await prometheus.alerts()) {
        if (alert.labels['job'] !== 'ill') strangers.push(alert)
        else if (alert.state === 'firing') seen.set(String(alert.labels['alertname']), alert)
      }
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    traffic.abort()
    await Promise.all(running)
    expect([...seen.keys()].toSorted()).toEqual(names.toSorted())
    expect(strangers.filter(({ state }) => state === 'firing')).toEqual([])
    const said = [...seen.values()].map(({ annotations }) => annotations['summary'])
    for (const summary of said) expect(summary).not.toMatch(/<no value>|NaN|error/)
    expect(seen.get('TimebudgetClockSkew')?.annotations['summary']).toContain('its peer 127.0.0.1')
  }, 120_000)
})

/** The same rules, with windows and patience of seconds. */
function hurried(text: string): string {
  return text.replaceAll(/\[\d+[mh]\]/g, '[15s]').replaceAll(/for: \d+m/g, 'for: 1s')
}

async function healthy(service: MeteredService): Promise<void> {
  await Promise.all([service.call('/next'), service.call('/ask/quick'), service.call('/quote')])
}

async function faulty(service: MeteredService): Promise<void> {
  const deadline = String(Date.now() + 4_000 + 300)
  await Promise.all([
    service.call('/ask/silent'),
    service.call('/ask/stalls'),
    service.call('/hangs', { 'x-request-timeout-ms': '200' }),
    service.call('/quote', { 'x-request-timeout-ms': '4000', 'x-request-deadline': deadline }),
  ])
}

async function repeat(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await work()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
