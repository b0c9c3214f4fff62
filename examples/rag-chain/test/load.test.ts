import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { planLoad, runLoad } from '../src/load.ts'

let close = (): void => {}
afterEach(() => close())

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0)
  close = () => server.close()
  await once(server, 'listening')
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}

const user = { id: 'user-1', at: 0, question: 'What is a floor?' }

describe('the load', () => {
  test('is the same for the same seed, and another for another', () => {
    const load = { seed: 'a', perSecond: 20, seconds: 5 }
    expect(planLoad(load)).toEqual(planLoad(load))
    expect(planLoad(load).map((one) => one.at)).not.toEqual(
      planLoad({ ...load, seed: 'b' }).map((one) => one.at),
    )
  })

  test('has about as many users as its rate says, in the order of their coming', () => {
    const users = planLoad({ seed: 'a', perSecond: 50, seconds: 20 })
    expect(users.length).toBeGreaterThan(850)
    expect(users.length).toBeLessThan(1150)
    const times = users.map((one) => one.at)
    expect(times).toEqual(times.toSorted((one, other) => one - other))
  })

  test('a user who is answered keeps the answer’s Server-Timing', async () => {
    const url = await serve((request, response) => {
      response.setHeader('server-timing', `${String(request.headers['x-request-id'])};dur=1`).end('{}')
    })
    expect(await runLoad([user], { url, patience: 5000 })).toMatchObject([
      { id: 'user-1', answered: true, serverTiming: 'user-1;dur=1' },
    ])
  })

  test('a user who gets an error is not answered', async () => {
    const url = await serve((_, response) => {
      response.writeHead(504).end('{}')
    })
    expect(await runLoad([user], { url, patience: 5000 })).toMatchObject([{ answered: false }])
  })

  test('a user whose patience ends closes the connection and is not answered', async () => {
    let gone: Promise<unknown> | undefined
    const url = await serve((_, response) => {
      response.writeHead(200).write('{')
      gone = once(response, 'close')
    })
    const [visit] = await runLoad([user], { url, patience: 50 })
    await gone
    expect(visit?.answered).toBe(false)
    expect(visit?.latency).toBeGreaterThanOrEqual(49)
  })
})
