/* oxlint-disable typescript/prefer-readonly -- JavaScript has no readonly */
// Which blocks of the packages' code have run, as V8 counts them.
import { Session } from 'node:inspector'

export class Coverage {
  #session = new Session()
  #seen = new Set()

  constructor() {
    this.#session.connect()
    this.#post('Profiler.enable')
    this.#post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
    this.takeNew()
  }

  get size() {
    return this.#seen.size
  }

  /** The blocks that have run since the last look and never before it. */
  takeNew() {
    const blocks = this.take().filter((block) => !this.#seen.has(block))
    for (const block of blocks) this.#seen.add(block)
    return blocks
  }

  /** The blocks that have run since the last look. */
  take() {
    const { result } = this.#post('Profiler.takePreciseCoverage')
    return result
      .filter(({ url }) => url.includes('/packages/'))
      .flatMap(({ url, functions }) => functions.map(({ ranges }) => ({ url, ranges })))
      .flatMap(({ url, ranges }) =>
        ranges.filter(({ count }) => count > 0).map((range) => blockOf(url, range)),
      )
  }

  stop() {
    this.#session.disconnect()
  }

  #post(method, parameters = {}) {
    let answer
    this.#session.post(method, parameters, (error, result) => {
      if (error !== null) throw error
      answer = result
    })
    return answer
  }
}

function blockOf(url, { startOffset, endOffset }) {
  return `${url}:${startOffset}-${endOffset}`
}
