import { type GgufTensor, ggufFile, type GgufValue } from './gguf.ts'

// About 2 million weights: a token takes about a millisecond, no longer than the news that somebody has left.
const width = 256
const layers = 2
const heads = 4
const innerWidth = 1024
const contextLength = 8192

// What a token is, by the numbers of llama.cpp.
const normal = 1
const unknown = 2
const control = 3
const byte = 6

interface Token {
  readonly text: string
  readonly type: number
}

const syllables = ['ba', 'de', 'fi', 'go', 'lu', 'ma', 'ne', 'pi', 'ro', 'su']
const words: readonly Token[] = syllables.flatMap((first) =>
  syllables.map((second) => ({ text: `▁${first}${second}`, type: normal })),
)
const vocabulary: readonly Token[] = [
  { text: '<unk>', type: unknown },
  { text: '<s>', type: control },
  { text: '</s>', type: control },
  // a SentencePiece vocabulary can spell everything
  ...Array.from({ length: 256 }, (_, value) => ({
    text: `<0x${value.toString(16).toUpperCase().padStart(2, '0')}>`,
    type: byte,
  })),
  { text: '▁', type: normal }, // a blank
  ...words,
]

const metadata: Readonly<Record<string, GgufValue>> = {
  'general.architecture': { kind: 'string', value: 'llama' },
  'general.name': { kind: 'string', value: 'random words' },
  'llama.vocab_size': { kind: 'uint32', value: vocabulary.length },
  'llama.context_length': { kind: 'uint32', value: contextLength },
  'llama.embedding_length': { kind: 'uint32', value: width },
  'llama.block_count': { kind: 'uint32', value: layers },
  'llama.feed_forward_length': { kind: 'uint32', value: innerWidth },
  'llama.rope.dimension_count': { kind: 'uint32', value: width / heads },
  'llama.attention.head_count': { kind: 'uint32', value: heads },
  'llama.attention.head_count_kv': { kind: 'uint32', value: heads },
  'llama.attention.layer_norm_rms_epsilon': { kind: 'float32', value: 1e-5 },
  'tokenizer.ggml.model': { kind: 'string', value: 'llama' },
  'tokenizer.ggml.tokens': { kind: 'strings', values: vocabulary.map(({ text }) => text) },
  'tokenizer.ggml.scores': { kind: 'float32s', values: vocabulary.map((_, index) => -index) },
  'tokenizer.ggml.token_type': { kind: 'int32s', values: vocabulary.map(({ type }) => type) },
  'tokenizer.ggml.unknown_token_id': { kind: 'uint32', value: 0 },
  'tokenizer.ggml.bos_token_id': { kind: 'uint32', value: 1 },
  'tokenizer.ggml.eos_token_id': { kind: 'uint32', value: 2 },
}

/** A GGUF file of Llama's architecture with random weights: it says made-up words and never that it has finished. */
export function tinyLlama(seed: number): Buffer {
  const random = seededRandom(seed)
  const matrix = (name: string, from: number, to: number): GgufTensor => ({
    name: `${name}.weight`,
    shape: [from, to],
    weights: new Float32Array(from * to).map(() => (random() * 2 - 1) * Math.sqrt(3 / from)),
  })
  const ones = (name: string): GgufTensor => ({
    name: `${name}.weight`,
    shape: [width],
    weights: new Float32Array(width).fill(1),
  })
  const output = matrix('output', width, vocabulary.length)
  // all but the words weigh nothing, and of a hundred words some always weigh more
  output.weights.fill(0, 0, (vocabulary.length - words.length) * width)
  const blocks = Array.from({ length: layers }, (_, layer) => [
    ones(`blk.${layer}.attn_norm`),
    ...['attn_q', 'attn_k', 'attn_v', 'attn_output'].map((name) =>
      matrix(`blk.${layer}.${name}`, width, width),
    ),
    ones(`blk.${layer}.ffn_norm`),
    matrix(`blk.${layer}.ffn_gate`, width, innerWidth),
    matrix(`blk.${layer}.ffn_up`, width, innerWidth),
    matrix(`blk.${layer}.ffn_down`, innerWidth, width),
  ])
  const tokens = matrix('token_embd', width, vocabulary.length)
  return ggufFile(metadata, [tokens, ...blocks.flat(), ones('output_norm'), output])
}

/** The same numbers from 0 to 1 for the same seed: a linear congruential generator. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
