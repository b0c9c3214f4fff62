import { type Duration, parseDuration } from '@timebudget/core'

/** The four limits of a call to a model; all end earlier where the request's deadline does. */
export interface Profile {
  /** For a new connection, TLS included. */
  readonly connect: Duration
  /** From the call to the first piece of content, headers included; only of streams. */
  readonly firstToken: Duration
  /** Between two pieces of content; or apart for content, and for anything that arrives, comments and pings included. */
  readonly idle: Duration | { readonly content: Duration; readonly transport: Duration }
  readonly total: Duration
}

/** What a profile is chosen by. */
export interface ProfileCall {
  readonly model: string | undefined
  readonly task: string | undefined
  readonly url: string
}

/** A profile's name, a profile, or a function of the call that gives one of the two. */
export type ProfileChoice = string | Profile | ((call: ProfileCall) => string | Profile)

/** A profile in milliseconds. */
export interface Limits {
  readonly connect: number
  readonly firstToken: number
  readonly idleContent: number
  readonly idleTransport: number
  readonly total: number
}

/** The profiles that everybody has. */
export const profiles: Readonly<Record<'classify' | 'chat' | 'long_summary', Profile>> = {
  classify: { connect: '3s', firstToken: '4s', idle: '4s', total: '15s' },
  chat: { connect: '3s', firstToken: '8s', idle: '8s', total: '60s' },
  long_summary: { connect: '3s', firstToken: '15s', idle: '12s', total: '180s' },
}

/**
 * The limits that are chosen for a call: by name among `own` and the built-in profiles, own ones first.
 * @throws TypeError that names what is unknown or cannot be read.
 */
export function limitsFor(
  choice: ProfileChoice,
  own: Readonly<Record<string, Profile>>,
  call: ProfileCall,
): Limits {
  const chosen = typeof choice === 'function' ? choice(call) : choice
  if (typeof chosen !== 'string') return parseProfile(chosen, 'profile')
  const named: Readonly<Record<string, Profile>> = Object.hasOwn(own, chosen) ? own : profiles
  const profile = Object.hasOwn(named, chosen) ? named[chosen] : undefined
  if (profile === undefined) {
    const known = [...new Set([...Object.keys(own), ...Object.keys(profiles)])].join(', ')
    throw new TypeError(`profile: none is called '${chosen}'; there are ${known}`)
  }
  return parseProfile(profile, `profiles.${chosen}`)
}

const limitNames = ['connect', 'firstToken', 'idle', 'total']

/**
 * A profile in milliseconds.
 * @throws TypeError that names, after `option`, the limit which is missing, unknown or cannot be read.
 */
export function parseProfile(profile: Profile, option: string): Limits {
  if (typeof profile !== 'object' || profile === null)
    throw new TypeError(`${option}: expected a profile, or the name of one`)
  for (const name of Object.keys(profile)) {
    if (!limitNames.includes(name))
      throw new TypeError(`${option}.${name}: no such limit; there are ${limitNames.join(', ')}`)
  }
  const { connect, firstToken, idle, total } = profile
  const apart = typeof idle === 'object' && idle !== null
  return {
    connect: parseDuration(connect, `${option}.connect`),
    firstToken: parseDuration(firstToken, `${option}.firstToken`),
    idleContent: parseDuration(
      apart ? idle.content : idle,
      apart ? `${option}.idle.content` : `${option}.idle`,
    ),
    idleTransport: parseDuration(apart ? idle.transport : idle, `${option}.idle.transport`),
    total: parseDuration(total, `${option}.total`),
  }
}
