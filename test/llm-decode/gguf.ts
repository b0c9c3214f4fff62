/** A value of a GGUF file's metadata, by the types that tests need. */
export type GgufValue =
  | { readonly kind: 'uint32' | 'float32'; readonly value: number }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'strings'; readonly values: readonly string[] }
  | { readonly kind: 'int32s' | 'float32s'; readonly values: readonly number[] }

/** Weights by name; the first number of `shape` is the one whose elements lie side by side. */
export interface GgufTensor {
  readonly name: string
  readonly shape: readonly number[]
  readonly weights: Float32Array
}

// The numbers of GGUF's specification, version 3.
const magic = 'GGUF'
const version = 3
const alignment = 32
const typeNumbers = { uint32: 4, int32: 5, float32: 6, string: 8, array: 9 }
const float32Weights = 0

/** The bytes of a GGUF file; all of its weights are 32 bit floats. */
export function ggufFile(
  metadata: Readonly<Record<string, GgufValue>>,
  tensors: readonly GgufTensor[],
): Buffer {
  const entries = Object.entries(metadata)
  const head = [Buffer.from(magic), uint32(version), uint64(tensors.length), uint64(entries.length)]
  for (const [key, value] of entries) head.push(string(key), ...typed(value))
  let offset = 0
  for (const { name, shape, weights } of tensors) {
    head.push(
      string(name),
      uint32(shape.length),
      ...shape.map(uint64),
      uint32(float32Weights),
      uint64(offset),
    )
    offset += alignedSize(weights.byteLength)
  }
  const body = tensors.map(({ weights }) =>
    padded(Buffer.from(weights.buffer, weights.byteOffset, weights.byteLength)),
  )
  return Buffer.concat([padded(Buffer.concat(head)), ...body])
}

function typed(value: GgufValue): Buffer[] {
  switch (value.kind) {
    case 'uint32':
      return [uint32(typeNumbers.uint32), uint32(value.value)]
    case 'float32':
      return [uint32(typeNumbers.float32), float32(value.value)]
    case 'string':
      return [uint32(typeNumbers.string), string(value.value)]
    case 'strings':
      return array(typeNumbers.string, value.values.map(string))
    case 'int32s':
      return array(typeNumbers.int32, value.values.map(uint32))
    case 'float32s':
      return array(typeNumbers.float32, value.values.map(float32))
  }
}

function array(type: number, elements: readonly Buffer[]): Buffer[] {
  return [uint32(typeNumbers.array), uint32(type), uint64(elements.length), ...elements]
}

function string(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([uint64(bytes.length), bytes])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

function float32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return bytes
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(alignedSize(bytes.length) - bytes.length)])
}

function alignedSize(size: number): number {
  return Math.ceil(size / alignment) * alignment
}
