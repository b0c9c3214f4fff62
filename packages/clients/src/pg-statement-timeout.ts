import type { Deadline } from '@timebudget/core'
import type { PgConnection, PgQuery } from './pg-shapes.ts'

// What is sent in the same transaction must be able to run in one: VACUUM, CALL or CREATE DATABASE may not.
const readsOrWritesRows =
  /^(?:[\s(]|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*(?:select|insert|update|delete|merge|with|values|table)\b/i

/** Whether a text is one statement, as far as can be told without parsing it, that reads or writes rows. */
export function canBeLimited(text: unknown): text is string {
  return typeof text === 'string' && readsOrWritesRows.test(text) && !text.replace(/;\s*$/, '').includes(';')
}

/**
 * Has the server end a query by itself. `statement_timeout` goes ahead of the query in the same message and the same
 * implicit transaction, local to it: so it is gone with the query's end, also behind a pooler such as PgBouncer, that
 * hands the server's connection to somebody else then. Within a transaction the value before it is put back.
 */
export function limitStatement(
  query: PgQuery,
  deadline: Deadline,
  isOutsideTransaction: () => boolean,
): void {
  if (!canBeLimited(query.text)) return
  const { name } = query
  const submit = query.submit.bind(query)
  const handleDataRow = query.handleDataRow.bind(query)
  const handleCommandComplete = query.handleCommandComplete.bind(query)
  const handleError = query.handleError.bind(query)
  let isAhead = false
  let phase: 'unsent' | 'setting' | 'running' | 'restoring' = 'unsent'

  query.requiresPreparation = () => true
  query.submit = (connection) => {
    const limit = Math.ceil(deadline.remaining())
    const restores = !isOutsideTransaction()
    if (!(limit >= 1 && limit < 2 ** 31)) {
      phase = 'running'
      return submit(connection)
    }
    connection.stream.cork?.()
    try {
      const failure = submit(
        wrapped(connection, { before: settingOf(limit), after: restores ? restoring : undefined }),
      )
      if (isAhead) phase = 'setting'
      return failure
    } finally {
      connection.stream.uncork?.()
    }
  }
  // the client takes the first answers for the query's own, and would note a statement as known that is not yet
  Object.defineProperty(query, 'name', { get: () => (phase === 'setting' ? undefined : name) })
  query.handleDataRow = (message) => {
    if (phase === 'running') handleDataRow(message)
  }
  query.handleCommandComplete = (message, connection) => {
    if (phase === 'running') handleCommandComplete(message, connection)
    phase = phase === 'setting' ? 'running' : 'restoring'
  }
  query.handleError = (error, connection) => {
    if (name !== undefined) delete connection.submittedNamedStatements?.[name]
    handleError(error, connection)
  }

  /** The connection for this one query: what comes before goes out with its first message, what comes after with its last. */
  function wrapped(
    connection: PgConnection,
    { before, after }: { readonly before: string; readonly after: string | undefined },
  ): PgConnection {
    const first = (send: () => void): void => {
      if (!isAhead) execute(connection, before)
      isAhead = true
      send()
    }
    return Object.create(connection, {
      parse: { value: (message: { readonly text: string }) => first(() => connection.parse(message)) },
      bind: { value: (message: object) => first(() => connection.bind(message)) },
      sync: {
        value: () => {
          if (after !== undefined) execute(connection, after)
          connection.sync()
        },
      },
    })
  }
}

function execute(connection: PgConnection, text: string): void {
  connection.parse({ text })
  connection.bind({})
  connection.execute({})
}

/** The tighter of our limit, in milliseconds, and the session's own, which is kept beside it. */
function settingOf(limit: number): string {
  return (
    `select pg_catalog.set_config('timebudget.own', own, true), pg_catalog.set_config('statement_timeout', case when own = '0' ` +
    `or own::interval > interval '${limit} ms' then '${limit}' else own end, true) ` +
    `from (select pg_catalog.current_setting('statement_timeout') as own) as session`
  )
}

const restoring = `select pg_catalog.set_config('statement_timeout', pg_catalog.current_setting('timebudget.own'), true)`
