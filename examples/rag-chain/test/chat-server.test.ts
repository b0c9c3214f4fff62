import { describe, expect, test } from 'vitest'
import { ask, askForAnswer, question, readChunks, startChatServer } from './chat-client.ts'

describe('a chat completion', () => {
  test('is one body with the answer, why it ends and what it cost', async () => {
    const body = await askForAnswer(await startChatServer(), question)
    expect(body).toMatchObject({
      id: expect.stringMatching(/^chatcmpl-\w+$/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'stand-in',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: expect.any(String), refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 4, completion_tokens: expect.any(Number) },
    })
    expect(body.choices[0].message.content.split(' ')).toHaveLength(body.usage.completion_tokens)
    expect(body.usage.total_tokens).toBe(4 + body.usage.completion_tokens)
  })

  test('takes content as a list of parts, and answers the same question with the same words', async () => {
    const url = await startChatServer()
    const parts = {
      ...question,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'What is a floor?' }] }],
    }
    const [text, list] = await Promise.all([askForAnswer(url, question), askForAnswer(url, parts)])
    expect(list.choices).toEqual(text.choices)
  })

  test.each(['max_tokens', 'max_completion_tokens'])('ends for its length at %s', async (limit) => {
    const body = await askForAnswer(await startChatServer(), { ...question, [limit]: 3 })
    expect(body).toMatchObject({ choices: [{ finish_reason: 'length' }], usage: { completion_tokens: 3 } })
  })
})

describe('a streamed chat completion', () => {
  test('sends the role, a chunk for each token, the finish reason and [DONE]', async () => {
    const url = await startChatServer()
    const whole = await askForAnswer(url, question)
    const response = await ask(url, { ...question, stream: true })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const { chunks, end } = await readChunks(response)
    expect(end).toBe('[DONE]')
    const { id, created } = chunks[0] ?? {}
    for (const chunk of chunks) {
      expect(chunk).toMatchObject({
        id,
        created,
        object: 'chat.completion.chunk',
        model: 'stand-in',
        choices: [{ index: 0 }],
      })
      expect(chunk).not.toHaveProperty('usage')
    }
    expect(chunks[0]).toMatchObject({
      choices: [{ delta: { role: 'assistant', content: '' }, finish_reason: null }],
    })
    expect(chunks.at(-1)).toMatchObject({ choices: [{ delta: {}, finish_reason: 'stop' }] })
    const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
    expect(text).toBe(whole.choices[0].message.content)
  })

  test('with include_usage has a last chunk without choices that tells the usage, and null before', async () => {
    const response = await ask(await startChatServer(), {
      ...question,
      stream: true,
      stream_options: { include_usage: true },
    })
    const { chunks, end } = await readChunks(response)
    expect(end).toBe('[DONE]')
    const last = chunks.pop()
    const tokens = chunks.filter(({ choices }) => choices[0]?.delta.content).length
    expect(last).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 4, completion_tokens: tokens, total_tokens: 4 + tokens },
    })
    for (const chunk of chunks) expect(chunk.usage).toBeNull()
  })
})

describe('an error', () => {
  test.each([
    ['no model', { messages: question.messages }, "must have required property 'model'"],
    ['no messages', { model: 'stand-in', messages: [] }, 'messages'],
    ['an unknown role', { model: 'stand-in', messages: [{ role: 'king', content: '' }] }, 'role'],
    ['a limit that is no number', { ...question, max_tokens: 'many' }, 'max_tokens'],
    ['a body that is no JSON', '{"model":', 'JSON'],
  ])('in the request (%s) is a 400 in the form that OpenAI’s clients read', async (_, body, message) => {
    const response = await ask(await startChatServer(), body)
    expect(response.status).toBe(400)
    const { error } = (await response.json()) as { error: object }
    expect(error).toMatchObject({
      message: expect.stringContaining(message),
      type: 'invalid_request_error',
      code: null,
    })
    expect(error).toHaveProperty('param')
  })

  test('in the URL is a 404 in the same form', async () => {
    const response = await fetch(`${await startChatServer()}/v1/completions`, { method: 'POST' })
    expect(response.status).toBe(404)
    expect(await response.json()).toEqual({
      error: {
        message: 'Invalid URL (POST /v1/completions)',
        type: 'invalid_request_error',
        param: null,
        code: null,
      },
    })
  })
})
