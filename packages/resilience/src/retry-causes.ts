// As deep as core looks, and an end for chains that bite their tail.
const longestChain = 10

/** Something with members that nothing is known of yet. */
export type Unknowns = Readonly<Record<string, unknown>>

/** Whether a value has members to look at. */
export function hasMembers(value: unknown): value is Unknowns {
  return typeof value === 'object' && value !== null
}

/** An error, its cause, the cause's cause, and so on: clients and libraries wrap each other's errors. */
export function causesOf(error: unknown): readonly Unknowns[] {
  const chain: Unknowns[] = []
  let link = error
  while (hasMembers(link) && chain.length < longestChain) {
    chain.push(link)
    link = link['cause']
  }
  return chain
}

/** What is found out by looking at somebody else's value, which may throw when it is looked at: then `otherwise`. */
export function lookAt<R>(look: () => R, otherwise: R): R {
  try {
    return look()
  } catch {
    return otherwise
  }
}
