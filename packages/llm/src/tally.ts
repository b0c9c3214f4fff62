import type { ProviderError, Reading, ReportedUsage } from './protocols/protocol.ts'
import type { Usage } from './usage.ts'

/** Characters of a token, about, where nobody has counted. */
const charactersPerToken = 4

/** What has come of an answer so far. */
export class Tally {
  contentChunks = 0
  textLength = 0
  /** Why the model has finished, once it has said so. */
  finish: string | undefined
  error: ProviderError | undefined
  #reported: ReportedUsage = {}

  take({ kind, text, usage, finish, error }: Reading): void {
    if (kind === 'content' || kind === 'reasoning' || kind === 'tool') {
      this.contentChunks += 1
      this.textLength += text?.length ?? 0
    }
    this.finish ??= finish
    this.error ??= error
    if (usage !== undefined) this.#reported = { ...this.#reported, ...withoutGaps(usage) }
  }

  /**
   * What was used: the provider's own counts, and estimates for those that never came of what was surely read or written;
   * what nobody can know stays absent. `promptLength` in characters, absent if the prompt was not worked on.
   */
  usage(promptLength: number | undefined): Usage {
    const { inputTokens, outputTokens } = this.#reported
    const input =
      inputTokens ?? (promptLength === undefined ? undefined : Math.ceil(promptLength / charactersPerToken))
    const output = outputTokens ?? (this.contentChunks === 0 ? undefined : this.#estimatedOutput())
    return {
      ...this.#reported,
      ...(input === undefined ? {} : { inputTokens: input }),
      ...(output === undefined ? {} : { outputTokens: output }),
      estimated: input !== inputTokens || output !== outputTokens,
    }
  }

  /** Providers put at least one token in a chunk. */
  #estimatedOutput(): number {
    return Math.max(this.contentChunks, Math.ceil(this.textLength / charactersPerToken))
  }
}

function withoutGaps(usage: ReportedUsage): ReportedUsage {
  return Object.fromEntries(Object.entries(usage).filter(([, count]) => count !== undefined))
}
