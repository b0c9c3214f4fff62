import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { nodeMatrix } from '../support/node-matrix.ts'
import { findProgram, requireOrSkip } from '../support/requirements.ts'
import { exportedLabels } from './exported.ts'
import { meteredService, type MeteredService, newerSdk, provokeEverything } from './metered-service.ts'

/** The SDK's two lines, the newer one on a Node that it runs on. */
const lines = [
  { line: '2.12 and 0.223', start: () => meteredService() },
  {
    line: '3.1 and 0.301',
    start: (context: { skip(note: string): never }) => {
      const node = nodeMatrix().find(({ version }) => version.startsWith('24.'))?.path
      requireOrSkip(context, existsSync(newerSdk) || undefined, 'node scripts/install-apart.mjs')
      return meteredService({
        node: requireOrSkip(context, node, 'node scripts/install-node-matrix.mjs'),
        sdk: newerSdk,
      })
    },
  },
]

async function provoked(starting: Promise<MeteredService>): Promise<string> {
  await using service = await starting
  await provokeEverything(service)
  return service.metrics()
}

describe.each(lines)('what the Prometheus exporter of OpenTelemetry $line gives', ({ start }) => {
  let text: Promise<string> | undefined
  /** What is exported once everything has happened. */
  function exportedText(context: { skip(note: string): never }): Promise<string> {
    text ??= provoked(start(context))
    return text
  }

  test('has a name for each metric: points are underscores, counters end in _total, and no unit is added', async (context) => {
    const exported = exportedLabels(await exportedText(context))
    for (const name of [
      'deadline_requests_total',
      'deadline_request_active',
      'deadline_budget_limit_bucket',
      'deadline_budget_remaining_bucket',
      'deadline_budget_utilization_bucket',
      'deadline_overrun_duration_bucket',
      'deadline_client_closed_total',
      'deadline_propagation_calls_total',
      'deadline_propagation_errors_total',
      'deadline_peer_skew',
      'deadline_operation_duration_bucket',
      'deadline_cancellation_duration_bucket',
      'deadline_work_late_duration_bucket',
      'deadline_work_duration_total',
      'deadline_work_wasted_total',
      'deadline_queue_wait_duration_bucket',
      'deadline_queue_decisions_total',
      'deadline_breaker_state',
      'deadline_breaker_moves_total',
      'deadline_retry_decisions_total',
      'deadline_retry_hedges_total',
      'deadline_floor_decisions_total',
      'deadline_loop_lag_bucket',
      'deadline_llm_calls_total',
      'deadline_llm_time_to_first_token_bucket',
      'deadline_llm_questions_total',
      'deadline_llm_answers_total',
      'deadline_llm_cost_total',
      'gen_ai_client_inference_duration_bucket',
      'gen_ai_client_inference_time_to_first_chunk_bucket',
      'gen_ai_client_inference_usage_input_tokens_total',
      'gen_ai_client_inference_usage_output_tokens_total',
    ])
      expect([...exported.keys()]).toContain(name)
    const withUnit = [...exported.keys()].filter((name) => /_(seconds|ratio|milliseconds)(_|$)/.test(name))
    expect(withUnit).toEqual([])
  })

  test('has no exemplars, and no value that is negative, infinite or no number but a skew', async (context) => {
    const values = (await exportedText(context))
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
    expect(values.length).toBeGreaterThan(100)
    expect(values.filter((line) => / # \{/.test(line))).toEqual([])
    const odd = values.filter((line) => !/ [0-9][0-9.]*(e[-+][0-9]+)?$/.test(line))
    expect(odd.every((line) => line.startsWith('deadline_peer_skew{'))).toBe(true)
    expect(odd).toHaveLength(1)
  })

  test('can be read by Prometheus', async (context) => {
    const promtool = requireOrSkip(context, findProgram('promtool'), 'apt-get install prometheus')
    const exported = await exportedText(context)
    const said = await new Promise<string>((resolve, reject) => {
      const checking = execFile(promtool, ['check', 'metrics'], (error, stdout, stderr) => {
        // 3 is an opinion on style, such as that a name should have a unit
        if (error !== null && error.code !== 3) reject(new Error(stderr))
        else resolve(stdout + stderr)
      })
      checking.stdin?.end(exported)
    })
    expect(said).not.toMatch(/parsing error/)
  })
})

test('says of a service that nobody has called yet that there was nothing', async () => {
  await using service = await meteredService()
  const text = await service.metrics()
  expect(text).toMatch(/^deadline_requests_total\{deadline_outcome="deadline_exceeded".* 0$/m)
  expect(text).toMatch(/^deadline_llm_calls_total\{deadline_outcome="first_token_timeout".* 0$/m)
  expect(text).toMatch(/^deadline_work_wasted_total\{deadline_work_kind="request".* 0$/m)
})
