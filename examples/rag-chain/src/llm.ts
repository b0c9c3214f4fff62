import { announce } from './announce.ts'
import { answerLength } from './answer.ts'
import { chatServer } from './chat-server.ts'
import { Decoder } from './decoder.ts'
import { numeric } from './settings.ts'
import { budgeted } from './upstream.ts'

// A stand-in for a model server, with what matters of one: few slots, a line before them, and time for each token.
const msPerToken = numeric('LLM_MS_PER_TOKEN', 20)
const decoder = new Decoder({ slots: numeric('LLM_SLOTS', 8), msPerToken })

// With less time than half of all answers need, a slot is better given to the next in line.
const app = await chatServer({ decoder, budgeted, floor: answerLength.median * msPerToken })

await app.listen({ port: numeric('PORT', 0), host: '127.0.0.1' })
announce('llm', app.server)
