import type { Script } from '@timebudget/llm/testing'

/** What the model says, so that pictures of the page show what a page looks like. */
export const answerText =
  'Sunlight holds every colour. Air scatters the short waves of it far more than the long ones: blue light, ' +
  'some five times as much as red. So blue reaches your eyes from the whole of the sky, and what is left of ' +
  'the sun itself looks a little yellow.\n\nIn the evening its light crosses much more air. Nearly all of the ' +
  'blue has gone astray by then, and the red remains.'

const tokensOf = (text: string): string[] => text.split(/(?= )/)

export function says(text: string, every = 5): Script {
  return { steps: [{ text: tokensOf(text), every }] }
}

/** Says so many words of the answer, and nothing more. */
export function breaksOff(words: number): Script {
  return { steps: [{ text: tokensOf(answerText).slice(0, words), every: 5 }], ending: 'silence' }
}

/** `n0 n1 n2 ...`: whatever is lost or doubled shows. */
export function numbered(count: number, every: number): Script {
  return { steps: [{ text: numbers(count), every }] }
}

export function numbers(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `n${index} `)
}
