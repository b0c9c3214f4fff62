/** Lets one thing after another be awaited until something ends it all, without piling up what waits for that end. */
export class UntilCutOff<Reason> {
  #cutOff: { readonly reason: Reason } | undefined
  #reject: ((reason: Reason) => void) | undefined

  /** `onCutOff` is called once, with what to tell of the end. */
  constructor(onCutOff: (tell: (reason: Reason) => void) => void) {
    onCutOff((reason) => {
      this.#cutOff = { reason }
      this.#reject?.(reason)
    })
  }

  /** What the promise settles with, or the reason of the end if that comes first. */
  of<T>(promise: Promise<T>): Promise<T> {
    if (this.#cutOff !== undefined) {
      promise.catch(ignore)
      return Promise.reject(this.#cutOff.reason)
    }
    return new Promise<T>((resolve, reject) => {
      this.#reject = reject
      promise.then(resolve, reject)
    })
  }
}

function ignore(): void {}
