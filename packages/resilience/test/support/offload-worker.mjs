/** Adds up the whole numbers below `input`. */
// oxlint-disable-next-line import/no-default-export -- a worker's task, unless another one is named
export default function sum(input) {
  let total = 0
  for (let i = 0; i < input; i += 1) total += i
  return total
}

/** Counts in shared memory for ever. */
export function countForEver(counter) {
  for (;;) Atomics.add(counter, 0, 1)
}

export function fail(message) {
  throw new RangeError(message)
}

export function giveBackFunction() {
  return () => undefined
}

export function leave(code) {
  process.exit(code)
}

export function lengthOf(buffer) {
  return buffer.byteLength
}
