import type { Dispatcher } from 'undici'
import type { Attempt } from './undici-call.ts'

/** What was asked for, copied: undici's redirects change the options of the call that they repeat. */
export class UndiciAttempt implements Attempt {
  readonly origin: string | URL | undefined
  readonly path: string
  readonly #usualOrigin: string | URL | undefined
  #url: URL | undefined

  constructor(
    { origin, path }: Pick<Dispatcher.DispatchOptions, 'origin' | 'path'>,
    usualOrigin: string | URL | undefined,
  ) {
    this.origin = origin ?? undefined
    this.path = path
    this.#usualOrigin = usualOrigin
  }

  get url(): URL {
    this.#url ??= urlOf(this, this.#usualOrigin)
    return this.#url
  }
}

/**
 * Where a call goes. Put together, not resolved: a path such as `//host` is a path. Of a call that names no origin, where
 * none was given for such, no host rule knows anything.
 */
function urlOf(
  { origin, path }: Pick<Attempt, 'origin' | 'path'>,
  usual: string | URL = 'http://unknown.invalid',
): URL {
  const asked = origin ?? usual
  if (typeof asked === 'string' && path.startsWith('/') && bareOrigin.test(asked))
    return new URL(asked + path)
  const base = new URL(asked)
  // a CONNECT names a host and a port there, a proxy's client a URL
  return path.startsWith('/') ? new URL(`${base.origin}${path}`) : base
}

/** Nothing but a scheme, a host and a port, as nearly all are written. */
const bareOrigin = /^https?:\/\/[a-z\d.:-]+$/
