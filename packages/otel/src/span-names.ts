/** Longer than any path of operations that somebody has written down: what is longer was made of somebody's input. */
const longest = 512

/** What is left of an emoji that was cut in its midst. */
const half = /[\ud800-\udbff]$/

/** A name as spans have it, cut where it would cost a batch of spans its place in an exporter's message. */
export function shortened(name: string): string {
  return name.length <= longest ? name : `${name.slice(0, longest).replace(half, '')}…`
}
