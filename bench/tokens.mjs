// What governing a stream costs per token: OpenAI's SDK with governedFetch against the SDK alone, in one process and in
// turns, so that the machine's noise meets both. `npm run build`, then `node bench/tokens.mjs`.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { governedFetch, openaiChat } from '@timebudget/llm'
import OpenAI from 'openai'

const tokens = 100_000
const rounds = 5
const params = { model: 'any', messages: [{ role: 'user', content: 'why?' }] }

const provider = fork(fileURLToPath(new URL('tokens-provider.mjs', import.meta.url)), [String(tokens)])
const [baseURL] = await once(provider, 'message')
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
async function measure(read) {
  const before = process.cpuUsage()
  const count = await runWithDeadline(Deadline.after('10m'), read)
  if (count !== tokens) throw new Error(`${count} of ${tokens} tokens came`)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / tokens
}

const measured = Object.fromEntries(Object.keys(ways).map((name) => [name, []]))
for (let round = 0; round <= rounds; round += 1) {
  for (const [name, read] of Object.entries(ways)) {
    const cost = await measure(read)
    if (round > 0) measured[name].push(cost) // the first round warms up
  }
}
const alone = Math.min(...measured['the SDK alone'])
for (const [name, costs] of Object.entries(measured)) {
  const least = Math.min(...costs)
  console.log(
    `${name.padEnd(30)} ${least.toFixed(2).padStart(6)} us a token  ${(least / alone).toFixed(2)} x`,
  )
}
provider.disconnect()
