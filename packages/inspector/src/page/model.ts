import type { RequestView, Snapshot, WholeRequest } from '../snapshot.ts'

/** What the page knows: what the server keeps, no more. */
export class Model {
  readonly #requests = new Map<number, RequestView>()
  #latest: Snapshot | undefined
  #whole: WholeRequest | undefined
  #receivedAt = 0

  /** The last snapshot; its requests are those that had changed. */
  get latest(): Snapshot | undefined {
    return this.#latest
  }

  /** When that came, by the page's own clock. */
  get receivedAt(): number {
    return this.#receivedAt
  }

  apply(snapshot: Snapshot, receivedAt: number): void {
    if (snapshot.session !== this.#latest?.session) {
      this.#requests.clear()
      this.#whole = undefined
    }
    this.#latest = snapshot
    this.#receivedAt = receivedAt
    for (const request of snapshot.requests) this.#requests.set(request.id, request)
    const kept = new Set(snapshot.kept)
    for (const id of this.#requests.keys()) if (!kept.has(id)) this.#requests.delete(id)
    this.applyWhole(snapshot)
  }

  /** Takes over only the request that is looked at. */
  applyWhole({ request }: Snapshot): void {
    if (request === null) return
    // the same object as long as nothing has changed: then nothing is drawn anew
    const isSame = this.#whole?.id === request.id && this.#whole.changed === request.changed
    if (!isSame) this.#whole = request
  }

  /** The moment it is at the server, on its own scale. */
  now(at: number): number {
    return (this.#latest?.now ?? 0) + (at - this.#receivedAt)
  }

  /** All of a request; what the list knows of it until that has come. One that is not kept any more stays. */
  whole(id: number | undefined): WholeRequest | undefined {
    if (id === undefined) return undefined
    if (this.#whole?.id === id) return this.#whole
    const request = this.#requests.get(id)
    return request === undefined ? undefined : { ...request, entries: [], dropped: 0, changed: 0 }
  }

  /** The latest first. */
  requests(): RequestView[] {
    return [...this.#requests.values()].sort((one, other) => other.id - one.id)
  }
}
