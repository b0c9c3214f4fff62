// A service that decodes, as its own process: `node engine.mjs '{ "library": ..., "model": ... }'`.
// It tells its parent over IPC where it listens and how many tokens it has decoded when something happens.
import { deadline } from '@timebudget/express'
import express from 'express'

const settings = JSON.parse(process.argv[2])
const { getLlama, LlamaCompletion } = await import(settings.library)

const llama = await getLlama({
  gpu: false,
  build: 'never',
  skipDownload: true,
  progressLogs: false,
  logLevel: 'error',
})
const model = await llama.loadModel({ modelPath: settings.model })
// one thread: threads that share too few cores wait for each other within each token
const context = await model.createContext({ contextSize: 8192, threads: 1 })
const sequence = context.getSequence()
// one request at a time; it lets the others wait in turn
const completion = new LlamaCompletion({ contextSequence: sequence })

// The engine's own count goes up as it begins to decode a token, whether or not anybody gets it.
const count = () => ({ decoded: sequence.tokenMeter.usedOutputTokens, epoch: Date.now() })
const report = (event, details) => process.send?.({ event, ...details })
let decodings = 0

const app = express()
app.set('env', 'test') // Express logs no errors
app.use(deadline(), express.json())
app.post('/v1/chat/completions', async (request, response) => {
  const { messages, stream = false, max_tokens: maxTokens } = request.body
  const { signal } = request.deadline
  const id = ++decodings
  const about = { id: `chatcmpl-${id}`, created: Math.floor(Date.now() / 1000), model: 'random-words' }
  const chunk = (choice) => {
    const choices = [{ index: 0, finish_reason: null, ...choice }]
    response.write(`data: ${JSON.stringify({ ...about, object: 'chat.completion.chunk', choices })}\n\n`)
  }
  report('begun', { id })
  signal.addEventListener('abort', () => report('told', { id, ...count(), outcome: signal.reason.outcome }))
  let tokens = 0
  const generate = async () => {
    try {
      return await completion.generateCompletion(messages.map(({ content }) => content).join('\n'), {
        maxTokens,
        temperature: 0,
        signal,
        onToken: (more) => {
          tokens += more.length
          if (tokens === 10) report('underway', { id, ...count() })
        },
        onTextChunk: (content) => stream && chunk({ delta: { content } }),
      })
    } finally {
      report('ended', { id, ...count() })
    }
  }
  if (stream) response.type('text/event-stream').flushHeaders()
  const content = await generate()
  if (stream) {
    chunk({ delta: {}, finish_reason: 'length' })
    response.end('data: [DONE]\n\n')
  } else {
    const message = { role: 'assistant', content }
    response.json({
      ...about,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: 'length' }],
    })
  }
})

const server = app.listen(0, '127.0.0.1', () =>
  report('listening', { url: `http://127.0.0.1:${server.address().port}` }),
)
process.on('disconnect', () => process.exit(0))
