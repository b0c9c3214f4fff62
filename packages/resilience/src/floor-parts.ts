import { type LatencySnapshot, readSnapshot } from './latency-snapshot.ts'

/** What one replica has learned. */
export interface FloorPart {
  readonly replica: string
  /** Grows with every time it is written. */
  readonly turn: number
  readonly latency: LatencySnapshot
}

// 32 replicas of 2 KiB are 64 KiB, read and written every few seconds. Of more, those that wrote last count.
const mostParts = 32

const longestText = 2 ** 20

const longestReplica = 64

/** What a store keeps for one floor: a part a replica, the one written last at the end. */
export function writeParts(parts: readonly FloorPart[]): string {
  return JSON.stringify({ version: 1, parts: parts.slice(-mostParts) })
}

/** Reads it; what is none of ours counts as nothing. */
export function readParts(text: string | null | undefined): FloorPart[] {
  if (typeof text !== 'string' || text.length > longestText) return []
  const value = parse(text)
  if (typeof value !== 'object' || value === null) return []
  if (!('version' in value) || value.version !== 1 || !('parts' in value)) return []
  return Array.isArray(value.parts) ? value.parts.filter(isPart) : []
}

function isPart(value: unknown): value is FloorPart {
  if (typeof value !== 'object' || value === null) return false
  if (!('replica' in value) || !('turn' in value) || !('latency' in value)) return false
  const { replica, turn, latency } = value
  if (typeof replica !== 'string' || replica.length > longestReplica) return false
  return typeof turn === 'number' && readSnapshot(latency) !== undefined
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
