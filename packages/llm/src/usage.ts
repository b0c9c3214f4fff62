/** What a call to a model used. A count that nobody told is absent, which is not the same as 0. */
export interface Usage {
  /** Tokens of the prompt, those read from the provider's cache included. */
  readonly inputTokens?: number | undefined
  /** Tokens of the answer, those of its reasoning included. */
  readonly outputTokens?: number | undefined
  /** Of the prompt's, those that the provider had in its cache. */
  readonly cachedTokens?: number | undefined
  /** Of the answer's, those of its reasoning. */
  readonly reasoningTokens?: number | undefined
  /** Whether any count is our own estimate, because the provider's never came. */
  readonly estimated: boolean
}

/** Nothing is known yet. */
export const unknownUsage: Usage = Object.freeze({ estimated: false })

/** Two calls' usage in one. */
export function addUsage(one: Usage, other: Usage): Usage {
  const sum = (name: Exclude<keyof Usage, 'estimated'>): number | undefined =>
    one[name] === undefined && other[name] === undefined ? undefined : (one[name] ?? 0) + (other[name] ?? 0)
  return {
    inputTokens: sum('inputTokens'),
    outputTokens: sum('outputTokens'),
    cachedTokens: sum('cachedTokens'),
    reasoningTokens: sum('reasoningTokens'),
    estimated: one.estimated || other.estimated,
  }
}
