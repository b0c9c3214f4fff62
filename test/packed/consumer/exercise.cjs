// One thing done with each package, by whichever way `load` gets at a module: `import` or `require`.
const assert = require('node:assert/strict')
const { execFile } = require('node:child_process')
const { once } = require('node:events')
const { createServer } = require('node:http')
const { join } = require('node:path')
const { promisify } = require('node:util')

const never = () => new Promise(() => undefined)

/** The origin of a server that has begun to listen; it is closed when the work with it is over. */
async function served(server, work) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    return await work(`http://127.0.0.1:${server.address().port}`)
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

/** A server whose handler never answers says at the deadline what has happened. */
async function answersByTheDeadline(server) {
  await served(server, async (origin) => {
    const answer = await fetch(origin, { headers: { 'x-request-timeout-ms': '100' } })
    assert.equal(answer.status, 504)
    assert.equal((await answer.json()).code, 'DEADLINE_EXCEEDED')
  })
}

const steps = {
  async '@timebudget/core'(load) {
    const { Deadline, operation, runWithDeadline } = await load('@timebudget/core')
    const deadline = Deadline.after('50ms')
    await assert.rejects(
      runWithDeadline(deadline, () => operation('search', {}, never)),
      { code: 'DEADLINE_EXCEEDED' },
    )
    deadline.settle()
  },

  async '@timebudget/core/wire'(load) {
    const { Deadline } = await load('@timebudget/core')
    const { decodeDeadline, defaultAccept, encodeDeadline } = await load('@timebudget/core/wire')
    const sent = Deadline.after('5s')
    const { deadline } = decodeDeadline(encodeDeadline(sent), defaultAccept, Date.now())
    assert.ok(deadline !== undefined)
    sent.settle()
  },

  async '@timebudget/core/server'(load) {
    const { withDeadline } = await load('@timebudget/core/server')
    await answersByTheDeadline(createServer(withDeadline(never)))
  },

  async '@timebudget/core/testing'(load) {
    const { ManualClock } = await load('@timebudget/core/testing')
    const clock = new ManualClock()
    clock.advance(250)
    assert.equal(clock.now(), 250)
  },

  async '@timebudget/express'(load) {
    const { deadline } = await load('@timebudget/express')
    const app = (await load('express')).default()
    app.use(deadline({ default: '5s' }))
    app.get('/', never)
    await answersByTheDeadline(createServer(app))
  },

  async '@timebudget/koa'(load) {
    const { deadline } = await load('@timebudget/koa')
    const { default: Koa } = await load('koa')
    const app = new Koa()
    app.use(deadline({ default: '5s' }))
    app.use(never)
    await answersByTheDeadline(createServer(app.callback()))
  },

  async '@timebudget/fastify'(load) {
    const { deadline } = await load('@timebudget/fastify')
    const { fastify } = await load('fastify')
    const app = fastify({ forceCloseConnections: true })
    await app.register(deadline, { default: '5s' })
    app.get('/', never)
    await app.ready()
    await answersByTheDeadline(app.server)
  },

  async '@timebudget/clients'(load) {
    const { Deadline, runWithDeadline } = await load('@timebudget/core')
    const { fetch: fetchInTime } = await load('@timebudget/clients/fetch')
    const { request } = await load('@timebudget/clients/node-http')
    const upstream = createServer(({ headers }, response) => response.end(headers['x-request-timeout-ms']))
    const deadline = Deadline.after('5s')
    await served(upstream, (origin) =>
      runWithDeadline(deadline, async () => {
        const left = Number(await (await fetchInTime(origin)).text())
        assert.ok(left > 0 && left <= 5000)
        const [response] = await once(request(origin).end(), 'response')
        const [text] = await once(response, 'data')
        assert.ok(Number(text) > 0 && Number(text) <= left)
      }),
    )
    deadline.settle()
  },

  async '@timebudget/resilience'(load) {
    const { retry } = await load('@timebudget/resilience')
    let attempts = 0
    const work = () => {
      attempts += 1
      if (attempts === 1) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
      return 'found'
    }
    assert.equal(await retry(work, { attempts: 2, retryOn: () => true }), 'found')
  },

  async '@timebudget/llm'(load) {
    const { governedFetch, ladder, rule } = await load('@timebudget/llm')
    const { localProvider, neverAnswers } = await load('@timebudget/llm/testing')
    const provider = await localProvider({ script: neverAnswers() })
    const governed = governedFetch({
      profile: { connect: '5s', firstToken: '100ms', idle: '5s', total: '5s' },
    })
    const body = JSON.stringify({
      model: 'any',
      stream: true,
      messages: [{ role: 'user', content: 'Hello' }],
    })
    await assert.rejects(
      governed(`${provider.openaiUrl}/chat/completions`, { method: 'POST', body }),
      ({ code, cause }) => [code, cause?.code].includes('FIRST_TOKEN_TIMEOUT'),
    )
    await provider.close()
    assert.equal((await ladder([rule(() => 'Later.')]).run('Hello')).text, 'Later.')
  },

  async '@timebudget/sse'(load) {
    const { sse } = await load('@timebudget/sse')
    const handler = (_request, response) =>
      void sse(response).pipe(async function* tokens() {
        yield 'Hello'
      })
    await served(createServer(handler), async (origin) => {
      const text = await (await fetch(origin)).text()
      assert.match(text, /event: token\n.*Hello/)
      assert.match(text, /event: done\n/)
    })
  },

  async '@timebudget/inspector'(load) {
    const { inspector } = await load('@timebudget/inspector')
    const inspect = inspector()
    const server = createServer((request, response) =>
      inspect(request, response, () => response.writeHead(404).end()),
    )
    await served(server, async (origin) => {
      const page = await fetch(`${origin}/__budget/`)
      assert.equal(page.status, 200)
      const [, script] = /src="([^"]+)"/.exec(await page.text())
      assert.equal((await fetch(new URL(script, `${origin}/__budget/`))).status, 200)
    })
    inspect.close?.()
  },

  async '@timebudget/otel'(load) {
    const { DeadlinePropagator, deadlineIn } = await load('@timebudget/otel')
    const { defaultTextMapGetter, ROOT_CONTEXT } = await load('@opentelemetry/api')
    const propagator = new DeadlinePropagator()
    const carrier = { 'x-request-timeout-ms': '500' }
    const deadline = deadlineIn(propagator.extract(ROOT_CONTEXT, carrier, defaultTextMapGetter))
    assert.ok(deadline.remaining() <= 500)
    deadline.settle()
    propagator.stop()
  },

  async '@timebudget/cli'(load) {
    const { simulate } = await load('@timebudget/cli')
    assert.ok((await simulate({ loads: [0.5], warmup: 1000, duration: 5000, seed: 1 })).length > 0)
    const { withDeadline } = await load('@timebudget/core/server')
    const bin = join(__dirname, 'node_modules/@timebudget/cli/dist/bin.js')
    const server = createServer(withDeadline((_request, response) => response.end('well')))
    await served(server, async (origin) => {
      const { stdout } = await promisify(execFile)(process.execPath, [bin, 'probe', '--json', origin])
      assert.match(stdout, /"outcome": ?"ok"/)
    })
  },
}

/** Loads every module, then does one thing with each package. Prints what has been done. */
exports.exercise = async function exercise(load, specifiers) {
  for (const specifier of specifiers) await load(specifier)
  for (const step of Object.values(steps)) await step(load)
  console.log(JSON.stringify(Object.keys(steps)))
}
