// A provider in a process of its own, so that its work is not counted.
import { localProvider, steadyTokens } from '@timebudget/llm/testing'
import { serve } from '../support/worker.mjs'

const provider = await localProvider({ script: steadyTokens(Number(process.argv[2])) })
serve({ url: () => provider.openaiUrl })
