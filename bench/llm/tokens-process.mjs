// Reads streams of tokens: with OpenAI's SDK alone, and governed.
import { Deadline, runWithDeadline } from '@timebudget/core'
import { governedFetch, openaiChat } from '@timebudget/llm'
import OpenAI from 'openai'
import { cpuMicroseconds, serve } from '../support/worker.mjs'

const [baseURL, count] = process.argv.slice(2)
const tokens = Number(count)
const params = { model: 'any', messages: [{ role: 'user', content: 'why?' }] }
const bare = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 })
const profile = { connect: '3s', firstToken: '30s', idle: '30s', total: '10m' }
const governed = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0, fetch: governedFetch({ profile }) })

async function readBare(client) {
  let count = 0
  const stream = await client.chat.completions.create({ ...params, stream: true })
  for await (const { choices } of stream) if (choices[0]?.delta.content) count += 1
  return count
}

async function readEvents(client) {
  let count = 0
  for await (const { type } of openaiChat(client, params)) if (type === 'text') count += 1
  return count
}

const ways = {
  'the SDK alone': () => readBare(bare),
  'with governedFetch': () => readBare(governed),
  'openaiChat with governedFetch': () => readEvents(governed),
}

/** Microseconds of CPU for each token, that of the connection and the SDK included. */
async function costOf(name) {
  const before = cpuMicroseconds()
  const came = await runWithDeadline(Deadline.after('10m'), ways[name])
  if (came !== tokens) throw new Error(`${came} of ${tokens} tokens came`)
  return (cpuMicroseconds() - before) / tokens
}

serve({ names: () => Object.keys(ways), costOf })
