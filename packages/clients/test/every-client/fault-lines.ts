import { expect } from 'vitest'
import { findTimeBudgetError } from '@timebudget/core'
import { causesOf, codesOf, failureOf, onlyEntry, underDeadline } from '../support/calls.ts'
import { type AnyClient, type Bench, type Check, type Fault, faults, type Lines } from './any-client.ts'

/** What an upstream's own faults look like. */
export const faultLines: Lines = {
  "an upstream that refuses the connection fails the call with the library's error":
    after('refuses the connection'),
  "an upstream whose name nobody knows fails it with the library's error": after(
    'has a name that nobody knows',
  ),
  "an upstream whose certificate nobody vouches for fails it with the library's error": after(
    'has a certificate that nobody vouches for',
  ),
  "a connection reset before the answer fails it with the library's error": after(
    'resets the connection before its answer',
  ),
  "a connection closed before the answer fails it with the library's error": after(
    'closes the connection before its answer',
  ),
  "a connection reset in the middle of the answer fails it with the library's error": after(
    'resets the connection in the middle of its answer',
  ),
}

function after(fault: Fault): Check {
  return (client, context) =>
    expectLibrarysError(client, faults[fault], () => client.bench(fault, {}, context))
}

/** Expects the library's own error of a call, whether it stands under a deadline or not. */
export async function expectLibrarysError(
  client: Pick<AnyClient, 'operation' | 'failsWith'>,
  knownBy: RegExp,
  open: () => Promise<Bench>,
): Promise<void> {
  // not what is below it: how a reset of HTTP/2 is told depends on who is quicker
  const [expected] = namesOf(await failureOfOne('bare'))
  const untouched = await failureOfOne('call')
  expect(namesOf(untouched)[0]).toBe(expected)
  expect(findTimeBudgetError(untouched)).toBeUndefined()
  await using bench = await open()
  await underDeadline(5_000, async (deadline) => {
    const failure = await failureOf(bench.call())
    expect(namesOf(failure)).toContain(expected)
    expect(sayingsOf(failure, bench)).toMatch(knownBy)
    expectOurs(client, failure)
    expect(onlyEntry(deadline)).toMatchObject({ name: client.operation, outcome: 'upstream_error' })
    expect(deadline.reason).toBeUndefined()
  })

  async function failureOfOne(way: 'bare' | 'call'): Promise<unknown> {
    await using without = await open()
    const failure = await failureOf(without[way]())
    // the fault is the one that was meant
    expect(sayingsOf(failure, without)).toMatch(knownBy)
    return failure
  }
}

function expectOurs(
  { failsWith, operation }: Pick<AnyClient, 'operation' | 'failsWith'>,
  failure: unknown,
): void {
  const ours = findTimeBudgetError(failure)
  if (failsWith === "the library's error") expect(ours).toBeUndefined()
  else {
    expect(ours).toMatchObject({ code: 'UPSTREAM_ERROR', operation, status: 502 })
    expect(ours?.message).toContain(`${operation} failed: `)
  }
}

function namesOf(error: unknown): unknown[] {
  return causesOf(error).map((cause) => (cause instanceof Error ? cause.name : cause))
}

/** All that an error and its causes say of themselves, and what the library has said beside it. */
function sayingsOf(failure: unknown, { heard = [] }: Bench): string {
  return [failure, ...heard].flatMap((error) => [...causesOf(error), ...codesOf(error)]).join(' ')
}
