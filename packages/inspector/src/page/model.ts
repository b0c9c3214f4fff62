import type { RequestView, Snapshot } from '../snapshot.ts'

/** What the page knows: what the server keeps, no more. */
export class Model {
  readonly #requests = new Map<number, RequestView>()
  #latest: Snapshot | undefined
  #receivedAt = 0

  /** The last snapshot; its requests are those that had changed. */
  get latest(): Snapshot | undefined {
    return this.#latest
  }

  /** When that came, by the page's own clock. */
  get receivedAt(): number {
    return this.#receivedAt
  }

  /** Where the next snapshot goes on from. */
  get place(): Pick<Snapshot, 'session' | 'version'> | undefined {
    return this.#latest
  }

  apply(snapshot: Snapshot, receivedAt: number): void {
    if (snapshot.session !== this.#latest?.session) this.#requests.clear()
    this.#latest = snapshot
    this.#receivedAt = receivedAt
    for (const request of snapshot.requests) this.#requests.set(request.id, request)
    const kept = new Set(snapshot.kept)
    for (const id of this.#requests.keys()) if (!kept.has(id)) this.#requests.delete(id)
  }

  /** The moment it is at the server, on its own scale. */
  now(at: number): number {
    return (this.#latest?.now ?? 0) + (at - this.#receivedAt)
  }

  request(id: number | undefined): RequestView | undefined {
    return id === undefined ? undefined : this.#requests.get(id)
  }

  /** The latest first. */
  requests(): RequestView[] {
    return [...this.#requests.values()].sort((one, other) => other.id - one.id)
  }
}
