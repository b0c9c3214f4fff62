import type { Frame } from './store.ts'

/** The frames in a stream's text after this one, in the order in which they come; `left` is called once at the end. */
export function framesOf(
  text: ReadableStream<string>,
  { after, left }: { readonly after: number; readonly left: () => void },
): AsyncIterableIterator<Frame> {
  const reader = text.getReader()
  const frames = parse(reader, after)
  let isLeft = false
  const leave = (): void => {
    if (isLeft) return
    isLeft = true
    left()
    // a generator alone would not return before more text has come
    reader.cancel().catch(() => {})
  }
  return {
    async next() {
      const step = await frames.next()
      if (step.done === true) leave()
      return step
    },
    async return() {
      leave()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

async function* parse(
  reader: ReadableStreamDefaultReader<string>,
  after: number,
): AsyncGenerator<Frame, undefined> {
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return undefined
    const texts = (rest + value).split('\n\n')
    rest = texts.pop() ?? ''
    for (const text of texts) {
      const frame = frameOf(`${text}\n\n`)
      if (frame !== undefined && frame.seq > after) yield frame
    }
  }
}

function frameOf(text: string): Frame | undefined {
  const [, seq, event] = /^id: (\d+)\nevent: (.*)\n/.exec(text) ?? []
  if (seq === undefined) return undefined
  return { seq: Number(seq), text, isLast: event === 'done' || event === 'error' }
}
