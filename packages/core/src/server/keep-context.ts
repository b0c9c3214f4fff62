import type { EventEmitter } from 'node:events'
import { ambient } from '../ambient.ts'
import type { Deadline } from '../deadline.ts'

/**
 * Emits an object's events under the deadline: body parsers, and code that waits for the client to leave, are called
 * from the socket's async context, where the request's is lost.
 */
export function keepContext(emitter: EventEmitter, deadline: () => Deadline): void {
  const { emit } = emitter
  emitter.emit = function emitUnderDeadline(this: EventEmitter, ...args: Parameters<typeof emit>): boolean {
    const current = deadline()
    if (ambient.storage.getStore() === current) return emit.apply(this, args)
    return ambient.storage.run(current, () => emit.apply(this, args))
  }
}
