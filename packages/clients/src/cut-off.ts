/** Ends waits that would otherwise last as long as what is waited for; holds on to one wait at a time only. */
export class CutOff {
  #reject: ((error: unknown) => void) | undefined
  #cause: { readonly error: unknown } | undefined

  /** Ends the wait that is on, and each that follows, with this error. */
  cut(error: unknown): void {
    this.#cause = { error }
    this.#reject?.(error)
    this.#reject = undefined
  }

  /** The result, unless the cut comes first; what comes of it later is swallowed. */
  until<T>(result: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#reject = reject
      result.then(resolve, reject)
      if (this.#cause !== undefined) reject(this.#cause.error)
    })
  }
}
