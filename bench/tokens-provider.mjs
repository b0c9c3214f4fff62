// The provider of tokens.mjs, in a process of its own, so that its work is not counted.
import { localProvider, steadyTokens } from '@timebudget/llm/testing'

const provider = await localProvider({ script: steadyTokens(Number(process.argv[2])) })
process.send(provider.openaiUrl)
process.once('disconnect', () => process.exit())
