import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import type { Socket } from 'node:net'
import type { Fetch } from '@timebudget/clients/fetch'
import type { Clock } from '@timebudget/core'
import { Agent, buildConnector, fetch as undiciFetch } from 'undici'

/** How connections are made: certificates, local address and so on, as Node's `tls.connect` takes them. */
export type ConnectOptions = Omit<buildConnector.BuildOptions, 'timeout'>

/** The call that a new connection is made for. */
export interface ConnectWatcher {
  /** `abandon` gives the attempt up. */
  connecting(abandon: () => void): void
  /** The attempt is over. */
  connected(result: { readonly made: boolean }): void
}

/** For a connection that no call waits for any more; milliseconds. */
const unwatchedLimit = 10_000

// A connection outlives the request that it was made in, and must not keep that request's context alive.
const outsideRequests = new AsyncResource('timebudget.llm.connection')

/** Connections to providers: kept open between calls, and each made under the eyes of the call that needs it. */
export class ModelConnector {
  readonly #watchers = new AsyncLocalStorage<ConnectWatcher>()
  readonly #agent: Agent

  constructor(options: ConnectOptions, clock: Clock) {
    const connect = buildConnector({ ...options, timeout: 0 })
    this.#agent = new Agent({
      // ours are exact, and know more
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (target, callback) => {
        const watcher = this.#watchers.getStore()
        outsideRequests.runInAsyncScope(() => {
          // its type leaves out that it returns the socket
          const socket = connect(target, (...result) => {
            timer?.cancel()
            watcher?.connected({ made: result[0] === null })
            callback(...result)
          }) as unknown as Socket
          const abandon = (): void => {
            socket.destroy(new Error('nobody waits for the connection any more'))
          }
          const timer = watcher === undefined ? clock.wakeAfter(unwatchedLimit, abandon) : undefined
          watcher?.connecting(abandon)
        })
      },
    })
  }

  /** Makes a call whose watcher hears of the connection, if it needs a new one. */
  fetch(watcher: ConnectWatcher, ...[input, init]: Parameters<Fetch>): Promise<Response> {
    // the Agent and the fetch must be of the same undici, whose types are not quite those of the global one
    const fetch = undiciFetch as unknown as Fetch
    const dispatched = { dispatcher: this.#agent, ...init } as unknown as RequestInit
    return this.#watchers.run(watcher, () => fetch(input, dispatched))
  }
}
