import type { EventEmitter } from 'node:events'
import { ambient } from '../ambient.ts'
import type { Deadline } from '../deadline.ts'

type Emit = EventEmitter['emit']

/**
 * Emits an object's events under the deadline: body parsers, and code that waits for the client to leave, are called
 * from the socket's async context, where the request's is lost.
 */
export function keepContext(emitter: EventEmitter, deadline: () => Deadline): void {
  const { emit } = emitter
  emitter.emit = function emitUnderDeadline(this: EventEmitter, ...args: Parameters<Emit>): boolean {
    const around = deadline()
    if (!lacksContext(this, args[0], around)) return Reflect.apply(emit, this, args)
    return emitUnder(around, this, emit, args)
  }
}

/** Whether somebody listens to an event who would be called outside the deadline. */
export function lacksContext(emitter: EventEmitter, event: string | symbol, deadline: Deadline): boolean {
  return emitter.listenerCount(event) > 0 && ambient.storage.getStore() !== deadline
}

/** Emits one event under the deadline. */
export function emitUnder(
  deadline: Deadline,
  emitter: EventEmitter,
  emit: Emit,
  args: Parameters<Emit>,
): boolean {
  return ambient.storage.run(deadline, Reflect.apply, emit, emitter, args)
}
