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
    return emitUnder(deadline(), emit, this, args)
  }
}

/** Emits one event under the deadline, unless nobody listens or it is the ambient one already. */
export function emitUnder(
  deadline: Deadline,
  emit: Emit,
  emitter: EventEmitter,
  args: Parameters<Emit>,
): boolean {
  if (emitter.listenerCount(args[0]) === 0 || ambient.storage.getStore() === deadline) {
    return Reflect.apply(emit, emitter, args)
  }
  return ambient.storage.run(deadline, Reflect.apply, emit, emitter, args)
}
