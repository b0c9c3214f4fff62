/** What of pg is used. */
export interface PgQueryConfig {
  readonly text?: string
  readonly name?: string
  readonly values?: unknown
  readonly rows?: number
  readonly query_timeout?: number
}

export interface PgPool {
  readonly totalCount: number
  connect(
    callback: (error: unknown, client: PgClient | undefined, release: (error?: unknown) => void) => void,
  ): void
  query(...args: readonly unknown[]): unknown
}

export interface PgClient {
  readonly connection?: PgConnection
  readonly host: string
  readonly port: number
  readonly ssl?: unknown
  readonly sslNegotiation?: string
  readonly processID: number | null
  readonly secretKey: number | null
  /** Whether several queries are on their way at once. */
  readonly pipeline?: boolean
  connect(callback: (error?: unknown) => void): void
  query(...args: readonly unknown[]): unknown
  end(callback: () => void): void
  on(event: 'error', listener: (error: unknown) => void): unknown
  removeListener(event: 'error', listener: (error: unknown) => void): unknown
  /** Only of a client that a pool gave out. */
  release(error?: unknown): void
}

export interface PgConnection {
  readonly stream: { pause(): void; resume(): void; destroy(): void; cork?(): void; uncork?(): void }
  readonly submittedNamedStatements?: Record<string, string>
  connect(portOrPath: number | string, host?: string): void
  requestSsl(): void
  cancel(processID: number | null, secretKey: number | null): void
  on(event: string, listener: () => void): unknown
  once(event: string, listener: () => void): unknown
  prependListener(event: 'readyForQuery', listener: (message?: { readonly status?: string }) => void): unknown
  parse(message: { readonly text: string; readonly name?: string }): void
  bind(message: object): void
  execute(message: object): void
  sync(): void
}

/** pg's own Query, as its client drives it. */
export interface PgQuery {
  readonly text: string | undefined
  name: string | undefined
  query_timeout?: number
  callback: (error: unknown, result?: unknown) => void
  requiresPreparation(): boolean
  submit(connection: PgConnection): Error | null | undefined
  handleDataRow(message: unknown): void
  handleCommandComplete(message: unknown, connection: PgConnection): void
  handleError(error: unknown, connection: PgConnection): void
}

type QueryClass = new (config: PgQueryConfig) => PgQuery

/** The Query class that goes with a client of pg's JavaScript driver; the native one has no connection to look at. */
export function queryClassOf(client: PgClient): QueryClass | undefined {
  return client.connection === undefined ? undefined : Reflect.get(client.constructor, 'Query')
}

/** Whether it drives the connection itself, as cursors and streams do. */
export function isSubmittable(config: unknown): boolean {
  return (
    typeof config === 'object' && config !== null && 'submit' in config && typeof config.submit === 'function'
  )
}
