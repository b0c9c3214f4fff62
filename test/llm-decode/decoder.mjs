// The most of a prompt that is read between two looks at the signal.
const piece = 64

/** A model in llama.cpp that says what comes next, for one caller at a time. */
export async function loadDecoder(library, modelPath) {
  const { getLlama, LlamaCompletion } = await import(library)
  const llama = await getLlama({
    gpu: false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    logLevel: 'error',
  })
  const model = await llama.loadModel({ modelPath })
  // one thread: threads that share too few cores wait for each other within each token
  const context = await model.createContext({ contextSize: 8192, threads: 1 })
  const sequence = context.getSequence()
  const completion = new LlamaCompletion({ contextSequence: sequence })
  let atRest = Promise.resolve()

  async function goOn(prompt, { onRead, ...options }) {
    const tokens = model.tokenize(prompt)
    await sequence.clearHistory()
    // the library looks at no signal before the first new token, however long the prompt
    const before = [model.tokens.bos, ...tokens].slice(0, -1)
    for (let start = 0; start < before.length; start += piece) {
      options.signal.throwIfAborted()
      await sequence.evaluateWithoutGeneratingNewTokens(before.slice(start, start + piece))
      onRead()
    }
    return completion.generateCompletion(tokens, { ...options, temperature: 0 })
  }

  return {
    /** The engine's own counts: they go up as it begins with tokens, whether or not anybody gets them. */
    get count() {
      const { usedInputTokens, usedOutputTokens } = sequence.tokenMeter
      return { read: usedInputTokens, decoded: usedOutputTokens, epoch: Date.now() }
    },
    /** Goes on with the prompt once it is its turn; `onEnd` is called when the engine is at rest again. */
    decode(prompt, { onEnd, ...options }) {
      const work = atRest.then(() => goOn(prompt, options)).finally(onEnd)
      atRest = work.catch(() => undefined)
      return work
    },
  }
}
