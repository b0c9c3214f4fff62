// A service that decodes, as its own process: `node engine.mjs '{ "library": ..., "model": ... }'`.
// It tells its parent over IPC where it listens and how many tokens it has decoded when something happens.
import { deadline } from '@timebudget/express'
import express from 'express'
import { loadDecoder } from './decoder.mjs'

const settings = JSON.parse(process.argv[2])
const decoder = await loadDecoder(settings.library, settings.model)
const report = (event, details) => process.send?.({ event, ...details })
let requests = 0

const app = express()
app.set('env', 'test') // Express logs no errors
app.use(deadline(), express.json())
app.post('/v1/chat/completions', async (request, response) => {
  const { messages, stream = false, max_tokens: maxTokens } = request.body
  const { signal } = request.deadline
  const id = ++requests
  const note = (event, details) => report(event, { id, ...decoder.count, ...details })
  note('begun')
  signal.addEventListener('abort', () => note('told', { outcome: signal.reason.outcome }))

  const about = { id: `chatcmpl-${id}`, created: Math.floor(Date.now() / 1000), model: 'random-words' }
  const chunk = (delta, finish_reason = null) => {
    const choices = [{ index: 0, delta, finish_reason }]
    response.write(`data: ${JSON.stringify({ ...about, object: 'chat.completion.chunk', choices })}\n\n`)
  }
  if (stream) response.type('text/event-stream').flushHeaders()

  let pieces = 0
  let tokens = 0
  const content = await decoder.decode(messages.map((message) => message.content).join('\n'), {
    signal,
    maxTokens,
    onRead: () => ++pieces === 1 && note('reading'),
    onToken: () => ++tokens === 10 && note('underway'),
    onTextChunk: (text) => stream && chunk({ content: text }),
    onEnd: () => note('ended'),
  })

  if (stream) {
    chunk({}, 'length')
    response.end('data: [DONE]\n\n')
  } else {
    const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'length' }]
    response.json({ ...about, object: 'chat.completion', choices })
  }
})

const server = app.listen(0, '127.0.0.1', () =>
  report('listening', { url: `http://127.0.0.1:${server.address().port}` }),
)
process.on('disconnect', () => process.exit(0))
