import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventScanner } from '../src/request/event-scanner.ts'

function scan(...chunks: readonly string[]): EventScanner {
  const scanner = new EventScanner()
  for (const chunk of chunks) scanner.add(Buffer.from(chunk))
  return scanner
}

test('events that have data are counted; comments, and what has not ended, are not', () => {
  expect(scan('data: 1\n\n', ': beat\n\n', 'event: x\n\n', 'data\n\n', 'data: 2\n').count).toBe(2)
  expect(scan('data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n').count).toBe(3)
})

test('what an error event says is kept, the first one alone', () => {
  expect(scan('event: error\ndata: {"a":\ndata: 1}\n\nevent: error\ndata: 2\n\n').error).toBe('{"a":1}')
  expect(scan('data: error\n\n').error).toBeUndefined()
})

test('it does not matter where the chunks are cut', () => {
  const stream = 'data: één\r\n\r\n: c\r\nevent: error\r\ndata: x\r\n\r\ndata: 3\n\n'
  const bytes = Buffer.from(stream)
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 8 }), (cuts) => {
      const scanner = new EventScanner()
      const edges = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
      for (const [index, end] of edges.entries()) scanner.add(bytes.subarray(edges[index - 1] ?? 0, end))
      expect([scanner.count, scanner.error]).toEqual([3, 'x'])
    }),
  )
})

test('lines and data without an end take bounded memory', () => {
  const scanner = new EventScanner()
  scanner.add(Buffer.from('event: error\n'))
  const chunk = Buffer.from(`data: ${'x'.repeat(60_000)}\n`)
  for (let index = 0; index < 200; index += 1) scanner.add(chunk)
  scanner.add(Buffer.from('\n'))
  expect(scanner.error?.length).toBeLessThan(140_000)
})
