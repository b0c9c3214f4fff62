import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Client, Query } from 'pg'
import { currentDeadline, workLate } from '@timebudget/core'
import { withDeadline } from '@timebudget/clients/pg'
import { pgBench } from './support/pg-bench.ts'
import { freePort } from '../../../test/support/free-port.ts'
import { eventually, failureOf, under } from './support/under.ts'

describe('a query under a deadline', () => {
  test('fails at the deadline, and the server stops running it', async (context) => {
    const bench = await pgBench(context)
    const pool = bench.pool()
    const db = withDeadline(pool)
    const late: unknown[] = []
    const unsubscribe = workLate.subscribe((event) => late.push(event))
    await under(300, async (deadline) => {
      expect(await failureOf(db.query('select pg_sleep(30)'))).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      expect(deadline.elapsed()).toBeLessThan(600)
      expect(deadline.ledger.entries).toMatchObject([{ name: 'pg', outcome: 'deadline_exceeded' }])
    })
    await sleep(200)
    expect(await bench.runningQueries()).toEqual([])
    await eventually(() => pool.idleCount === 1)
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    expect(pool.totalCount).toBe(1)
    unsubscribe()
    expect(late).toEqual([])
  })

  test('ends on the server by itself where no request to cancel reaches it', async (context) => {
    const bench = await pgBench(context)
    const client = await bench.client({ application_name: 'governed' })
    Object.defineProperty(client, 'secretKey', { value: 1 })
    await under(300, async () => {
      expect(await failureOf(withDeadline(client).query('select pg_sleep(30)'))).toMatchObject({
        code: 'DEADLINE_EXCEEDED',
      })
    })
    await eventually(async () => (await bench.runningQueries()).length === 0, 1_000)
    expect((await client.query('select 2 as two')).rows).toEqual([{ two: 2 }])
  })

  test('is told to the server as what is left then, in the same round trip, and leaves no setting behind', async (context) => {
    const bench = await pgBench(context)
    const client = await bench.client()
    const db = withDeadline(client)
    const seen = `select current_setting('statement_timeout') as own`
    await under(5_000, async () => {
      for (const query of [
        seen,
        { text: seen, name: 'named' },
        { text: `${seen} where $1`, values: [true] },
        { text: seen, name: 'named' },
      ]) {
        const { rows, fields, rowCount } = await db.query<{ own: string }>(query)
        expect(fields.map(({ name }) => name)).toEqual(['own'])
        expect(rowCount).toBe(1)
        expect(Number.parseInt(rows[0]?.own ?? '', 10)).toBeGreaterThan(
          4_000 * Number(rows[0]?.own.endsWith('ms')),
        )
        expect(rows[0]?.own).toMatch(/^([45]\d{3}ms|5s)$/)
      }
    })
    expect((await client.query(seen)).rows).toEqual([{ own: '0' }])
  })

  test('keeps a tighter statement_timeout of the session', async (context) => {
    const bench = await pgBench(context)
    const client = await bench.client({ statement_timeout: 123 })
    await under(5_000, async () => {
      const { rows } = await withDeadline(client).query(`select current_setting('statement_timeout') as own`)
      expect(rows).toEqual([{ own: '123ms' }])
    })
  })

  test('fails with an error of the database as it is, with its code, and the ledger says upstream_error', async (context) => {
    const bench = await pgBench(context)
    const db = withDeadline(await bench.client())
    await under(5_000, async (deadline) => {
      expect(await failureOf(db.query('select 1/0 as broken'))).toMatchObject({ code: '22012' })
      expect(await failureOf(db.query('select nothing from nowhere'))).toMatchObject({
        code: '42P01',
        position: '21',
      })
      expect(await failureOf(db.query({ text: 'select nothing', name: 'broken' }))).toMatchObject({
        code: '42703',
      })
      expect((await db.query({ text: 'select 1 as one', name: 'broken' })).rows).toEqual([{ one: 1 }])
      expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual([
        ...Array.from({ length: 3 }, () => 'upstream_error'),
        'ok',
      ])
    })
  })

  test('that is several statements, or may not run in a transaction, is sent as it is', async (context) => {
    const bench = await pgBench(context)
    const db = withDeadline(await bench.client())
    await under(5_000, async () => {
      const results: unknown = await db.query(`select 'a;b' as text; select 2 as two`)
      expect(results).toMatchObject([{ rows: [{ text: 'a;b' }] }, { rows: [{ two: 2 }] }])
      await db.query('create table if not exists vacuumed (id int)')
      await db.query('vacuum vacuumed')
    })
    await under(300, async () => {
      expect(await failureOf(db.query(`select 1; select pg_sleep(30)`))).toMatchObject({
        code: 'DEADLINE_EXCEEDED',
      })
    })
    await eventually(async () => (await bench.runningQueries()).length === 0, 1_000)
  })

  test('takes a callback, which is called in the context of its caller', async (context) => {
    const bench = await pgBench(context)
    const pool = withDeadline(bench.pool({ max: 1 }))
    const answers = [5_000, 6_000].map((budget) =>
      under(budget, async (deadline) => {
        const answer = await new Promise((resolve) => {
          const told = (error: Error | null, result: unknown): void =>
            resolve([error, result, currentDeadline()])
          pool.query('select $1::int as n', [budget], told)
        })
        expect(answer).toMatchObject([null, { rows: [{ n: budget }] }, {}])
        expect(Reflect.get(Object(answer), 2)).toBe(deadline)
      }),
    )
    await Promise.all(answers)
  })

  test('that waits behind another on the same connection is never sent once its time is up', async (context) => {
    const bench = await pgBench(context)
    const client = await bench.client()
    const slow = client.query('select pg_sleep(0.6)')
    await client.query('select 1').catch(() => {})
    await slow
    await client.query('create table if not exists written (id int)')
    const busy = client.query('select pg_sleep(0.6)')
    await under(100, async (deadline) => {
      const failed = await failureOf(withDeadline(client).query('insert into written values (1)'))
      expect(failed).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      expect(deadline.elapsed()).toBeLessThan(500)
    })
    await busy
    expect((await client.query('select * from written')).rows).toEqual([])
  })

  test('does not have the next query on the connection cancelled in its place', async (context) => {
    const bench = await pgBench(context)
    const client = await bench.client()
    const db = withDeadline(client)
    for (let round = 0; round < 30; round += 1) {
      const cut = under(15 + round, async () => failureOf(db.query('select pg_sleep(0.03)')))
      const next = client.query('select pg_sleep(0.005), 7 as seven')
      await cut
      expect((await next).rows).toMatchObject([{ seven: 7 }])
    }
  })

  test('is called in the ledger what `operation` makes of it, sent or not', async (context) => {
    const bench = await pgBench(context)
    const pool = bench.pool()
    const db = withDeadline(pool, { floor: '1s', operation: ({ text }) => `sql ${text?.split(' ')[0]}` })
    await under(500, async (deadline) => {
      expect(await failureOf(db.query('select 1'))).toMatchObject({ code: 'BUDGET_TOO_SMALL' })
      expect(deadline.ledger.entries).toMatchObject([{ name: 'sql select', outcome: 'short_circuited' }])
    })
    expect(pool.totalCount).toBe(0)
  })

  test('keeps the deadline where several queries are on their way at once, and spares those beside it', async (context) => {
    const bench = await pgBench(context)
    const client = await bench.client({ pipeline: true })
    const db = withDeadline(client)
    await under(300, async () => {
      const slow = failureOf(db.query('select pg_sleep(30)'))
      const beside = client.query('select 1 as one')
      expect(await slow).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      expect((await beside).rows).toEqual([{ one: 1 }])
    })
    expect((await client.query(`select current_setting('statement_timeout') as own`)).rows).toEqual([
      { own: '0' },
    ])
  })

  test('passes a query object that drives the connection itself through', async (context) => {
    const bench = await pgBench(context)
    const db = withDeadline(await bench.client())
    await under(5_000, async () => {
      const query = db.query(new Query<{ n: number }>('select 1 as n'))
      const rows: unknown[] = []
      query.on('row', (row) => rows.push(row))
      await new Promise((resolve) => query.on('end', resolve))
      expect(rows).toEqual([{ n: 1 }])
    })
  })
})

describe('a server that cannot be reached', () => {
  test('fails with the error of the connection while there is time', async () => {
    const port = await freePort()
    await under(5_000, async (deadline) => {
      const failed = await failureOf(withDeadline(new Client({ host: '127.0.0.1', port })).connect())
      expect(failed).toMatchObject({ code: 'ECONNREFUSED' })
      expect(deadline.ledger.entries).toMatchObject([{ outcome: 'upstream_error' }])
    })
  })

  test('costs a request its budget and no more when it is frozen, and works again afterwards', async (context) => {
    const bench = await pgBench(context)
    const pool = bench.pool({ max: 2 })
    const db = withDeadline(pool)
    await db.query('select 1')
    bench.server.freeze()
    try {
      await under(200, async (deadline) => {
        expect(await failureOf(db.query('select 2'))).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
        expect(deadline.elapsed()).toBeLessThan(500)
      })
      await under(200, async (deadline) => {
        expect(await failureOf(db.connect())).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
        expect(deadline.elapsed()).toBeLessThan(500)
      })
      // the frozen connection is given up
      await eventually(() => pool.totalCount < 2)
    } finally {
      bench.server.thaw()
    }
    await under(10_000, async () => {
      expect((await db.query('select 3 as three')).rows).toEqual([{ three: 3 }])
    })
    await eventually(() => pool.idleCount === pool.totalCount)
  })
})
