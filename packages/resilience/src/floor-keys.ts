import { LRUCache } from 'lru-cache'
import { type LearnedFloorOptions, resolveFloorOptions, type ResolvedFloorOptions } from './floor-options.ts'
import { boundedKey } from './bounded-key.ts'
import { positiveInteger } from './option-values.ts'
import { LearnedFloor } from './learned-floor.ts'

/** How the floors of many keys are learned; every option may be left out. */
export interface LearnedFloorsOptions extends LearnedFloorOptions {
  /** With more the one longest unused is forgotten; 1,000: 6 MiB of them if little used, 30 to 60 if much. */
  readonly maxKeys?: number | undefined
}

/** A learned floor for each key, such as a model's or an index's name; so many keys at most. */
export class LearnedFloors {
  readonly #options: ResolvedFloorOptions
  readonly #floors: LRUCache<string, LearnedFloor>

  constructor(options: ResolvedFloorOptions, { maxKeys }: { readonly maxKeys: number }) {
    this.#options = options
    this.#floors = new LRUCache({ max: maxKeys })
  }

  get size(): number {
    return this.#floors.size
  }

  /** The key's floor, made on first use; of a key only the first 256 characters count. */
  for(key: string): LearnedFloor {
    const operation = boundedKey(key)
    const known = this.#floors.get(operation)
    if (known !== undefined) return known
    const floor = new LearnedFloor(operation, this.#options)
    this.#floors.set(operation, floor)
    return floor
  }
}

/**
 * Learned floors by key, for operations that take different times for different things.
 *
 *     const floors = learnedFloors({ mode: 'enforce' })
 *     await operation('generate', { floor: floors.for(`generate ${model}`) }, work)
 *
 * @throws TypeError that names an option which is unknown or cannot be read.
 */
export function learnedFloors({ maxKeys = 1000, ...options }: LearnedFloorsOptions = {}): LearnedFloors {
  return new LearnedFloors(resolveFloorOptions(options), { maxKeys: positiveInteger(maxKeys, 'maxKeys') })
}
