import type { Span } from '@opentelemetry/api'
import { guarded } from './guarded.ts'

const writers = new WeakMap<Span, Array<() => void>>()

/**
 * Calls back right before a span ends, while it can still be written. An SDK from 2.3 on tells its span processors by
 * `onEnding`, which calls `writeBeforeEnd`; with `patch` the span's own `end` does, for older ones and without a processor.
 */
export function beforeEnd(span: Span, write: () => void, { patch }: { readonly patch: boolean }): void {
  const known = writers.get(span)
  if (known === undefined) writers.set(span, [write])
  else known.push(write)
  if (patch && !Object.hasOwn(span, 'end')) patchEnd(span)
}

/** Lets everybody write who waited for the span's end; the first call counts. */
export function writeBeforeEnd(span: Span): void {
  const waiting = writers.get(span)
  if (waiting === undefined) return
  writers.delete(span)
  for (const write of waiting) guarded('a span at its end', write, undefined)
}

function patchEnd(span: Span): void {
  const { end } = span
  span.end = function endWithFacts(...args) {
    writeBeforeEnd(span)
    end.apply(span, args)
  }
}
