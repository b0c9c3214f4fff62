import { execFile } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { findProgram, requireOrSkip } from '../support/requirements.ts'
import { exportedLabels } from './exported.ts'
import { meteredService, type MeteredService, provokeEverything, sdkLines } from './metered-service.ts'

async function provoked(starting: Promise<MeteredService>): Promise<string> {
  await using service = await starting
  await provokeEverything(service)
  // awaited, or the service would have gone by then
  return await service.metrics()
}

describe.each(sdkLines)(
  'what the Prometheus exporter of OpenTelemetry $line gives',
  { timeout: 60_000 },
  ({ start }) => {
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
      const said = await checked(promtool, await exportedText(context))
      expect(said).not.toMatch(/parsing error/)
    })
  },
)

test('says of a service that nobody has called yet that there was nothing', { timeout: 60_000 }, async () => {
  await using service = await meteredService()
  const text = await service.metrics()
  expect(text).toMatch(/^deadline_requests_total\{deadline_outcome="deadline_exceeded".* 0$/m)
  expect(text).toMatch(/^deadline_llm_calls_total\{deadline_outcome="first_token_timeout".* 0$/m)
  expect(text).toMatch(/^deadline_work_wasted_total\{deadline_work_kind="request".* 0$/m)
})

test('keeps what strangers call things readable and bounded', { timeout: 60_000 }, async (context) => {
  const promtool = requireOrSkip(context, findProgram('promtool'), 'apt-get install prometheus')
  await using service = await meteredService()
  for (const name of ['a"b', 'a\\', 'a\nb{c="d"} 1', '\r', '\u2028', '{}', '# HELP x', '名'])
    await service.call(`/named?name=${encodeURIComponent(name)}`)
  const many = Array.from({ length: 200 }, (_, index) => service.call(`/named?name=n${index}`))
  await Promise.all(many)
  const text = await service.metrics()
  expect(await checked(promtool, text)).not.toMatch(/parsing error/)
  const counts = text.split('\n').filter((line) => line.startsWith('deadline_operation_duration_count{'))
  expect(counts).toHaveLength(51)
  expect(counts.filter((line) => line.includes('deadline_operation="other"'))).toHaveLength(1)
  expect(counts.some((line) => line.includes('deadline_operation="名"'))).toBe(true)
})

/** What promtool says of a text; throws if it cannot be read. */
function checked(promtool: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const checking = execFile(promtool, ['check', 'metrics'], (error, stdout, stderr) => {
      // 3 is an opinion on style, such as that a name should have a unit
      if (error !== null && error.code !== 3) reject(new Error(stderr))
      else resolve(stdout + stderr)
    })
    checking.stdin?.end(text)
  })
}
