import type { createOpenAI } from '@ai-sdk/openai'
import type { generateText, streamText, wrapLanguageModel } from 'ai'
import assert from 'node:assert/strict'
import { Deadline, findTimeBudgetError, outcomeOf, runWithDeadline } from '@timebudget/core'
import { aiSdkMiddleware, type Profile } from '@timebudget/llm'
import {
  cutAfter,
  errorAnswer,
  headersThenSilence,
  type LocalProvider,
  localProvider,
  neverAnswers,
  type Script,
  steadyTokens,
  tokensThenSilence,
} from '@timebudget/llm/testing'
import { modelName, prompt } from './surface.ts'

/** What AI SDK 6 and 7 have in common. */
export interface AiSdk {
  readonly createOpenAI: typeof createOpenAI
  readonly generateText: typeof generateText
  readonly streamText: typeof streamText
  readonly wrapLanguageModel: typeof wrapLanguageModel
}

/** What the middleware must do for each AI SDK, over a fetch that is not ours. */
export interface MiddlewareCheck {
  readonly name: string
  run(sdk: AiSdk): Promise<void>
}

interface Scene {
  readonly sdk: AiSdk
  readonly provider: LocalProvider
  /** A call's settings, without retries. */
  settings(more?: { readonly signal?: AbortSignal }): Parameters<typeof generateText>[0]
}

const ample: Profile = { connect: '10s', firstToken: '20s', idle: '20s', total: '60s' }

function check(
  name: string,
  {
    script,
    limits = {},
  }: { readonly script: Script | readonly Script[]; readonly limits?: Partial<Profile> },
  run: (scene: Scene) => Promise<void>,
): MiddlewareCheck {
  return {
    name,
    async run(sdk) {
      const provider = await localProvider({ script })
      const model = sdk.wrapLanguageModel({
        model: sdk.createOpenAI({ baseURL: provider.openaiUrl, apiKey: 'test' }).chat(modelName),
        middleware: aiSdkMiddleware({ profile: { ...ample, ...limits } }),
      })
      try {
        await run({
          sdk,
          provider,
          settings: ({ signal } = {}) => ({
            model,
            prompt,
            maxRetries: 0,
            ...(signal === undefined ? {} : { abortSignal: signal }),
          }),
        })
      } finally {
        await provider.close()
      }
    },
  }
}

interface Heard {
  readonly text: string
  readonly error: unknown
  readonly parts: readonly string[]
}

async function stream({ sdk }: Scene, settings: Parameters<typeof generateText>[0]): Promise<Heard> {
  let text = ''
  let error: unknown
  const parts: string[] = []
  const result = sdk.streamText({
    ...settings,
    onError: (event) => {
      error = event.error
    },
  })
  try {
    for await (const part of result.fullStream) {
      parts.push(part.type)
      if (part.type === 'text-delta') text += part.text
    }
  } catch (thrown) {
    assert.equal(thrown, error)
  }
  if (error !== undefined) await assert.rejects(async () => result.text)
  return { text, error, parts }
}

async function closedByUs(provider: LocalProvider): Promise<void> {
  const request = await provider.nextRequest()
  assert((await request.closed).byClient)
}

export const middlewareChecks: readonly MiddlewareCheck[] = [
  check('streams and generates as without it', { script: steadyTokens(3) }, async (scene) => {
    const deadline = Deadline.after('20s')
    await runWithDeadline(deadline, async () => {
      assert.equal((await stream(scene, scene.settings())).text, 'word word word')
      const { text, usage, finishReason } = await scene.sdk.generateText(scene.settings())
      assert.equal(text, 'word word word')
      assert.equal(usage.outputTokens, 3)
      assert.equal(finishReason, 'stop')
    })
    assert.deepEqual(
      deadline.ledger.entries.map(({ name, outcome }) => [name, outcome]),
      [
        ['generate', 'ok'],
        ['generate', 'ok'],
      ],
    )
    deadline.settle()
  }),
  check(
    'gives up a model that says nothing',
    { script: neverAnswers(), limits: { firstToken: 200 } },
    async (scene) => {
      const { error } = await stream(scene, scene.settings())
      assert.equal(outcomeOf(error), 'first_token_timeout')
      await closedByUs(scene.provider)
    },
  ),
  check(
    'gives up a model that answers and then says nothing',
    { script: headersThenSilence(), limits: { firstToken: 200 } },
    async (scene) => {
      const { error } = await stream(scene, scene.settings())
      assert.equal(outcomeOf(error), 'first_token_timeout')
      await closedByUs(scene.provider)
    },
  ),
  check(
    'gives up a stream that has gone silent, and keeps what has come',
    { script: tokensThenSilence(3), limits: { idle: 200 } },
    async (scene) => {
      const { text, error } = await stream(scene, scene.settings())
      assert.equal(text, 'word word word')
      assert.equal(outcomeOf(error), 'stream_stalled')
      await closedByUs(scene.provider)
    },
  ),
  check(
    'gives up a whole answer that takes too long',
    { script: neverAnswers(), limits: { firstToken: 50, total: 300 } },
    async ({ sdk, settings, provider }) => {
      await assert.rejects(
        async () => sdk.generateText(settings()),
        (error) => findTimeBudgetError(error)?.code === 'TOTAL_TIMEOUT',
      )
      await closedByUs(provider)
    },
  ),
  check('ends with the deadline', { script: steadyTokens(1000, 20) }, async (scene) => {
    for (const way of ['stream', 'generate'] as const) {
      const deadline = Deadline.after('250ms')
      const error = await runWithDeadline(deadline, async () => {
        if (way === 'stream') return (await stream(scene, scene.settings())).error
        return scene.sdk.generateText(scene.settings()).catch((thrown: unknown) => thrown)
      })
      assert.equal(findTimeBudgetError(error), deadline.reason)
      await closedByUs(scene.provider)
    }
  }),
  check('ends as the AI SDK does when the user stops', { script: steadyTokens(1000, 20) }, async (scene) => {
    const controller = new AbortController()
    const hearing = stream(scene, scene.settings({ signal: controller.signal }))
    const request = await scene.provider.nextRequest()
    await request.sent(3)
    const leftAt = performance.now()
    controller.abort()
    const { parts, error } = await hearing
    assert.equal(error, undefined)
    assert.equal(parts.at(-1), 'abort')
    assert((await request.closed).at - leftAt < 100)
    assert.equal(scene.provider.requests.length, 1)
  }),
  check('takes no cut-off stream for an answer', { script: cutAfter(3) }, async (scene) => {
    const { text, error } = await stream(scene, scene.settings())
    assert.equal(text, 'word word word')
    assert.equal(outcomeOf(error), 'upstream_error')
  }),
  check('throws what the model failed with as it is', { script: errorAnswer(401) }, async (scene) => {
    const { error } = await stream(scene, scene.settings())
    const thrown: unknown = await scene.sdk.generateText(scene.settings()).catch((reason: unknown) => reason)
    for (const seen of [error, thrown]) {
      assert(typeof seen === 'object' && seen !== null && 'statusCode' in seen)
      assert.equal(seen.statusCode, 401)
    }
  }),
  check(
    'warns once of retries of the SDK’s own',
    { script: errorAnswer(503, {}, { 'retry-after-ms': '1' }) },
    async ({ sdk, settings, provider }) => {
      const warnings: string[] = []
      const note = (warning: Error): unknown => warnings.push(warning.message)
      process.on('warning', note)
      for (const maxRetries of [0, 2, 2]) {
        await assert.rejects(async () => sdk.generateText({ ...settings(), maxRetries }))
        await new Promise(setImmediate)
        const about = warnings.filter((message) => message.includes('the AI SDK retries by itself'))
        assert.equal(about.length, maxRetries === 0 ? 0 : 1)
      }
      process.off('warning', note)
      assert.equal(provider.requests.length, 7)
    },
  ),
]
