import { createServer, type Server } from 'node:http'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { fetch } from '@timebudget/clients/fetch'
import { openRequestOf, withDeadline } from '@timebudget/core/server'
import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'

const app = new Hono<{ Bindings: HttpBindings }>()

app.get('/search', async (context) => {
  const words = encodeURIComponent(context.req.query('q') ?? '')
  const answer = await fetch(`${process.env['INDEX_URL']}/search?q=${words}`)
  return context.json(await answer.json())
})

app.onError((error, context) => {
  if (openRequestOf(context.env.incoming)?.fail(error) === true) return RESPONSE_ALREADY_SENT
  if (error instanceof HTTPException) return error.getResponse()
  console.error(error)
  return context.text('Internal Server Error', 500)
})

const listener = withDeadline(getRequestListener(app.fetch), { default: '3s', max: '60s' })
export const server: Server = createServer(listener).listen(process.env['PORT'] ?? 3000)
