import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readEvents } from '../src/browser/read-events.ts'
import { encodeEvent } from '../src/frame.ts'

interface Seen {
  readonly event: string | undefined
  readonly data: string
  readonly id: string | undefined
}

/** Reads bytes that arrive in these pieces. */
async function read(pieces: readonly Uint8Array[]): Promise<Seen[]> {
  const seen: Seen[] = []
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece)
      controller.close()
    },
  })
  await readEvents(body, {
    onBytes() {},
    onEvent({ event, data, id }) {
      seen.push({ event, data, id })
      return true
    },
  })
  return seen
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

const everything = [
  '\uFEFF: hello\n\n',
  'retry: 3000\n\n',
  'id: 1\nevent: token\ndata: {"text":"中文 😀"}\n\n',
  'event:token\ndata:no space\n\n',
  'data: first\ndata: second\ndata:\n\n',
  'event: unheard-of\ndata: x\nunknown: field\nnonsense\n\n',
  'event: no data, no event\n\n',
  'id: bad\0id\ndata: y\n\n',
  'data: cut off',
]

const expected: Seen[] = [
  { event: 'token', data: '{"text":"中文 😀"}', id: '1' },
  { event: 'token', data: 'no space', id: undefined },
  { event: undefined, data: 'first\nsecond\n', id: undefined },
  { event: 'unheard-of', data: 'x', id: undefined },
  { event: undefined, data: 'y', id: undefined },
]

for (const [name, lineEnd] of [
  ['LF', '\n'],
  ['CRLF', '\r\n'],
  ['CR', '\r'],
] as const) {
  const bytes = bytesOf(everything.join('').replaceAll('\n', lineEnd))

  test(`events with ${name} are read whole wherever the bytes are split in two`, async () => {
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(await read([bytes.subarray(0, at), bytes.subarray(at)]), `split at ${at}`).toEqual(expected)
    }
  })

  test(`events with ${name} are read whole byte by byte`, async () => {
    expect(await read([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(expected)
  })

  test(`an event with ${name} is there as soon as it is complete`, async () => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const writer = writable.getWriter()
    const data = new Promise<string>((resolve) => {
      void readEvents(readable, {
        onBytes() {},
        onEvent(event) {
          resolve(event.data)
          return false
        },
      })
    })
    void writer.write(bytesOf(`data: x${lineEnd}${lineEnd}`)).catch(() => {})
    expect(await data).toBe('x')
  })
}

test('an event of a megabyte is read whole from small pieces', async () => {
  const text = '中'.repeat(350_000)
  const bytes = bytesOf(encodeEvent({ event: 'token', data: { text } }))
  expect(bytes.length).toBeGreaterThan(1_000_000)
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += 16_383) pieces.push(bytes.subarray(at, at + 16_383))
  const [event] = await read(pieces)
  expect(JSON.parse(event?.data ?? '')).toEqual({ text })
})

test('an event that does not end is refused before it fills the memory', async () => {
  const piece = bytesOf('x'.repeat(1_000_000))
  let pulled = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled += 1
      controller.enqueue(pulled === 1 ? bytesOf('data: ') : piece)
    },
  })
  await expect(readEvents(body, { onBytes() {}, onEvent: () => true })).rejects.toThrow()
  expect(pulled).toBeLessThan(25)
})

test('a reader that has enough gives the body up', async () => {
  let cancelled = false
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(bytesOf('data: x\n\ndata: y\n\n')),
    cancel() {
      cancelled = true
    },
  })
  const seen: string[] = []
  await readEvents(body, {
    onBytes() {},
    onEvent({ data }) {
      seen.push(data)
      return false
    },
  })
  expect(seen).toEqual(['x'])
  expect(cancelled).toBe(true)
})

test('whatever is sent is read as it was sent, however it is split', async () => {
  const name = fc.string({ minLength: 1 }).filter((text) => !/[\r\n\0]|^\s|^$/.test(text))
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({ event: name, data: fc.json().map((text): unknown => JSON.parse(text)), id: name }),
        {
          maxLength: 5,
        },
      ),
      fc.integer({ min: 1, max: 40 }),
      async (events, size) => {
        const bytes = bytesOf(events.map((event) => encodeEvent(event)).join(''))
        const pieces: Uint8Array[] = []
        for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
        const seen = await read(pieces)
        expect(seen).toEqual(events.map(({ event, data, id }) => ({ event, data: JSON.stringify(data), id })))
      },
    ),
    { numRuns: 200 },
  )
})
