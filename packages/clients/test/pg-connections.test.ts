import { describe, expect, test } from 'vitest'
import { withDeadline } from '@timebudget/clients/pg'
import { pgBench } from './support/pg-bench.ts'
import { eventually, failureOf, under } from './support/under.ts'

const own = `select current_setting('statement_timeout') as own`

describe('a connection of a pool', () => {
  test('is waited for until the deadline, and not lost when it comes later', async (context) => {
    const bench = await pgBench(context)
    const pool = bench.pool({ max: 1 })
    const db = withDeadline(pool)
    const held = await pool.connect()
    await under(200, async (deadline) => {
      await expect(db.connect()).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      await expect(db.query('select 1')).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      expect(deadline.elapsed()).toBeLessThan(500)
    })
    held.release()
    await eventually(() => pool.idleCount === 1 && pool.waitingCount === 0)
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  })

  test('is governed too, by callback as well', async (context) => {
    const bench = await pgBench(context)
    const pool = bench.pool({ max: 1 })
    const db = withDeadline(pool)
    await under(300, async () => {
      const failure = await new Promise((resolve) => {
        db.connect((error, client, done) => {
          expect(error).toBeNull()
          client?.query('select pg_sleep(30)', (failed) => {
            done()
            resolve(failed)
          })
        })
      })
      expect(failure).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    })
    await eventually(() => pool.idleCount === 1)
    expect(await bench.runningQueries()).toEqual([])
  })

  test('goes back only when nothing runs on it any more', async (context) => {
    const bench = await pgBench(context)
    const pool = bench.pool({ max: 1 })
    await under(60_000, async (deadline) => {
      const client = await withDeadline(pool).connect()
      const cut = failureOf(client.query('select pg_sleep(30)'))
      await eventually(async () => (await bench.runningQueries()).length === 1)
      deadline.cancel()
      expect(await cut).toMatchObject({ code: 'CANCELLED' })
      client.release()
      expect(pool.idleCount).toBe(0)
    })
    const started = Date.now()
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    expect(Date.now() - started).toBeLessThan(1_000)
  })
})

describe('a transaction under a deadline', () => {
  test('may be rolled back after the deadline, and the connection is as good as new', async (context) => {
    const bench = await pgBench(context)
    const pool = bench.pool({ max: 1 })
    await pool.query('create table if not exists accounts (id int)')
    await under(300, async () => {
      const client = await withDeadline(pool).connect()
      await client.query('begin')
      await client.query('insert into accounts values (1)')
      await expect(client.query('select pg_sleep(30)')).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      await expect(client.query('commit')).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      await client.query('rollback')
      client.release()
    })
    expect((await pool.query(`select *, txid_current_if_assigned() from accounts`)).rows).toEqual([])
    expect((await pool.query(own)).rows).toEqual([{ own: '0' }])
    expect(pool.totalCount).toBe(1)
  })

  test('that was left open when its time ran out costs the connection, not the next user', async (context) => {
    const bench = await pgBench(context)
    const pool = bench.pool({ max: 1 })
    await under(200, async () => {
      const client = await withDeadline(pool).connect()
      await client.query('begin')
      await expect(client.query('select pg_sleep(30)')).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      client.release()
    })
    // a savepoint can be made in a transaction only
    await expect(pool.query('savepoint here')).rejects.toMatchObject({ code: '25P01' })
  })

  test('keeps a statement_timeout of its own for what is not governed in it', async (context) => {
    const bench = await pgBench(context)
    const client = await bench.client()
    const db = withDeadline(client)
    await under(5_000, async () => {
      await db.query('begin isolation level serializable')
      await client.query(`set local statement_timeout = '17s'`)
      expect((await db.query('select 1 as one')).rows).toEqual([{ one: 1 }])
      expect((await db.query({ text: 'select $1::int as n', values: [2], name: 'n' })).rows).toEqual([
        { n: 2 },
      ])
      expect((await client.query(own)).rows).toEqual([{ own: '17s' }])
      await db.query('savepoint here')
      await expect(db.query('select 1/0')).rejects.toMatchObject({ code: '22012' })
      await expect(db.query('select 1')).rejects.toMatchObject({ code: '25P02' })
      await db.query('rollback to savepoint here')
      expect((await client.query(own)).rows).toEqual([{ own: '17s' }])
      await db.query('commit')
    })
    expect((await client.query(own)).rows).toEqual([{ own: '0' }])
  })
})
