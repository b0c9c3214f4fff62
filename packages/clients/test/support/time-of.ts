/** Milliseconds that something takes, without those in which a busy machine gave this process no turn. */
export async function timeOf(work: Promise<unknown>): Promise<number> {
  const begun = performance.now()
  let [last, heldUp] = [begun, 0]
  const look = (): void => {
    const since = performance.now() - last
    last += since
    if (since > 3 * beat) heldUp += since
  }
  const looking = setInterval(look, beat)
  await work
  clearInterval(looking)
  look()
  return performance.now() - begun - heldUp
}

const beat = 5
