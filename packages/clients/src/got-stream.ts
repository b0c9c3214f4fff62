import { errorMonitor } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Request, RequestError } from 'got'
import type { GotCallUnderDeadline } from './got-call.ts'

/** Lets the stream of a call, and those of its retries, live until the deadline and no longer. */
export function settleStream(stream: Request, governed: GotCallUnderDeadline): Request {
  let current = stream
  governed.onCutOff((reason) => current.destroy(reason))
  const follow = (attempt: Request): Request => {
    current = attempt
    attempt.once('response', (response) => governed.answered(response))
    attempt.once('end', () => void governed.finish())
    // not a listener of 'error', with which a stream's error would no longer be missed by whoever has none
    attempt.on(errorMonitor, (error: Error) => governed.explain(error))
    attempt.once('close', () => {
      if (current === attempt) governed.running.end('cancelled')
    })
    attempt.on('request', (request: ClientRequest) => holdBackAnswer(request, governed))
    passRetriesOn(attempt, follow)
    return attempt
  }
  return follow(stream)
}

/** A stream's end cannot be taken back: the answer of a peer that is out of time as we are about to be is not begun. */
function holdBackAnswer(request: ClientRequest, governed: GotCallUnderDeadline): void {
  const emit = request.emit.bind(request)
  request.emit = (event: string | symbol, ...args: unknown[]): boolean =>
    (event === 'response' && governed.isOvertaken(args[0] as IncomingMessage)) || emit(event, ...args)
}

type CreateRetryStream = (options?: object) => Request

/**
 * Whoever wants retries of a stream listens for them and makes the next stream with what the event brings; got allows
 * one listener, and retries only if there is one.
 */
function passRetriesOn(stream: Request, follow: (next: Request) => Request): void {
  const emit = stream.emit.bind(stream)
  stream.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (event !== 'retry') return emit(event, ...args)
    const [count, error, create] = args as [number, RequestError, CreateRetryStream]
    return emit('retry', count, error, (options?: object) => follow(create(options)))
  }
}
