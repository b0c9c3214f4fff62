import { channel as diagnosticsChannel } from 'node:diagnostics_channel'
import { format } from 'node:util'

/** A kind of event: a channel of `node:diagnostics_channel` and the shape of what is published on it. */
export interface EventChannel<Payload> {
  /** The channel's name, for `diagnostics_channel.subscribe`. */
  readonly name: string
  /** Whether anybody listens. */
  readonly observed: boolean
  /** Builds the payload and hands it out, if anybody listens; never throws. */
  publish(build: () => Payload): void
  /** Listens until the returned function is called. What the listener throws or rejects with is warned about and hurts nobody. */
  subscribe(listener: (payload: Payload) => void): () => void
}

/** Opens a channel of `node:diagnostics_channel` for one kind of event. */
export function defineEvent<Payload>(name: string): EventChannel<Payload> {
  const channel = diagnosticsChannel(name)
  return {
    name,
    get observed(): boolean {
      return channel.hasSubscribers
    },
    publish(build): void {
      if (!channel.hasSubscribers) return
      try {
        channel.publish(build())
      } catch (error) {
        warnOfObserver(name, error)
      }
    },
    subscribe(listener): () => void {
      // Node turns what a subscriber throws into an uncaught exception
      const guarded = (payload: unknown): void => {
        try {
          const pending: unknown = listener(payload as Payload)
          if (pending instanceof Promise) pending.catch((error: unknown) => warnOfObserver(name, error))
        } catch (error) {
          warnOfObserver(name, error)
        }
      }
      channel.subscribe(guarded)
      return function unsubscribe(): void {
        channel.unsubscribe(guarded)
      }
    },
  }
}

function warnOfObserver(name: string, error: unknown): void {
  // String() throws on an object without a prototype
  process.emitWarning(format('a listener of %s failed: %s', name, error), 'TimeBudgetWarning')
}
