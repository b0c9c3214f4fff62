// One listener a signal, however many deadlines follow it: a shutdown signal serves every request of a process, and
// more than ten listeners on one signal print a warning. AbortSignal.any would do, but loses aborts on Node 20.
const followers = new WeakMap<AbortSignal, Set<() => void>>()

function notifyFollowers(this: AbortSignal): void {
  const all = followers.get(this)
  followers.delete(this)
  for (const follower of all ?? []) follower()
}

/** Calls `follower` once when the signal aborts, unless it left before; at once if it has aborted already. */
export function follow(signal: AbortSignal, follower: () => void): void {
  if (signal.aborted) return follower()
  let all = followers.get(signal)
  if (all === undefined) {
    all = new Set()
    // first: what only looks like a signal fails here, and must not be taken for one that is listened to
    signal.addEventListener('abort', notifyFollowers, { once: true })
    followers.set(signal, all)
  }
  all.add(follower)
}

/** Ends what `follow` began. */
export function unfollow(signal: AbortSignal, follower: () => void): void {
  const all = followers.get(signal)
  if (all === undefined) return
  all.delete(follower)
  if (all.size > 0) return
  followers.delete(signal)
  signal.removeEventListener('abort', notifyFollowers)
}
