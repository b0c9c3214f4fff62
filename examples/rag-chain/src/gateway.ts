import { randomUUID } from 'node:crypto'
import express from 'express'
import type { NextFunction, Request, Response } from 'express'
import { deadline, deadlineErrors } from '@timebudget/express'
import { announce } from './announce.ts'
import { numeric, required } from './settings.ts'
import { budgeted, upstream, type UpstreamFailed } from './upstream.ts'

// Where a user's request enters: here its budget is set, and here it ends.
const budget = numeric('BUDGET_MS', 3000)
const orchestrate = upstream({ name: 'orchestrator', url: required('ORCHESTRATOR_URL'), timeout: budget })

const app = express()
// Server-Timing to everybody, so that a browser's network panel shows where the time went.
if (budgeted) app.use(deadline({ default: budget, serverTiming: true }))
app.use(express.json())

app.post('/chat', async (request, response) => {
  const id = request.get('x-request-id') ?? randomUUID()
  response.json(await orchestrate(request.body, { 'x-request-id': id }))
})

if (budgeted) app.use(deadlineErrors())
app.use(function answerFailure(
  error: Partial<UpstreamFailed>,
  _: Request,
  response: Response,
  next: NextFunction,
) {
  if (response.headersSent) return next(error)
  response
    .status(error.status ?? 500)
    .set(error.headers ?? {})
    .json({ error: error.message })
})

const server = app.listen(numeric('PORT', 0), '127.0.0.1', () => announce('gateway', server))
