/** A piece of text that an answer can rest on. */
export interface Passage {
  readonly title: string
  readonly text: string
}

/** What the chain knows. */
export const corpus: readonly Passage[] = [
  {
    title: 'Budgets',
    text: 'A request has one budget, set where it enters; every hop spends from the same purse.',
  },
  {
    title: 'Deadlines',
    text: 'A deadline is a moment, a timeout a length; only the moment can be handed on unchanged.',
  },
  { title: 'Queues', text: 'A queue that does not look at deadlines serves those who have already left.' },
  {
    title: 'Retries',
    text: 'A retry that cannot finish in time only adds load to a service that is already slow.',
  },
  {
    title: 'Cancelling',
    text: 'Cancelling is worth something only when it reaches the socket and the model behind it.',
  },
  {
    title: 'Floors',
    text: 'Below its floor an operation is not worth starting, for it would end with nothing.',
  },
  {
    title: 'Fallbacks',
    text: 'A fallback needs a reserve, time kept back for it before the first attempt began.',
  },
  {
    title: 'Clocks',
    text: 'Clocks of two machines differ, so the time that is left travels beside the moment.',
  },
]

/** How many words of the question a passage shares. */
export function relevance(passage: Passage, question: string): number {
  const words = new Set(wordsOf(question))
  return wordsOf(`${passage.title} ${passage.text}`).filter((word) => words.has(word)).length
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[a-z]{3,}/g) ?? []
}
