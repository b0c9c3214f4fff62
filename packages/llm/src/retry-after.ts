/**
 * Milliseconds after which an answer's headers say that a retry may succeed; `undefined` if they say nothing that can be
 * read. `epoch` is now, in Unix epoch milliseconds.
 */
export function retryAfterOf(headers: Pick<Headers, 'get'>, epoch: number): number | undefined {
  return count(headers.get('retry-after-ms'), 1) ?? readRetryAfter(headers.get('retry-after'), epoch)
}

function readRetryAfter(text: string | null, epoch: number): number | undefined {
  if (text === null) return undefined
  const seconds = count(text, 1000)
  if (seconds !== undefined) return seconds
  // without a name of a month it is no HTTP date, but '-5' for one can be read as a date
  const date = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - epoch)
}

function count(text: string | null, unit: number): number | undefined {
  return text !== null && /^\s*\d{1,10}(\.\d{1,6})?\s*$/.test(text) ? Number(text) * unit : undefined
}
