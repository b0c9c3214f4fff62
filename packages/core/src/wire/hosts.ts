import { isIP } from 'node:net'

/**
 * Which hosts a rule is for: all, none, host patterns (`'api.example.com'`, `'*.internal'`, `'10.0.0.7:8080'`), or a
 * function of the URL.
 */
export type HostRule = boolean | readonly string[] | ((url: URL) => boolean)

/** A rule ready to be asked. */
export type HostTest = (url: URL) => boolean

/**
 * The rule as a function of the URL.
 * @throws TypeError that names the option when the rule is none of the four kinds.
 */
export function hostTest(rule: HostRule, option: string): HostTest {
  if (typeof rule === 'boolean') return () => rule
  if (typeof rule === 'function') return rule
  if (!Array.isArray(rule) || !rule.every((pattern) => typeof pattern === 'string' && pattern !== '')) {
    throw new TypeError(`${option}: expected true, false, a list of host patterns or a function of the URL`)
  }
  const patterns = rule.map((pattern) => pattern.toLowerCase())
  return (url) => patterns.some((pattern) => matches(pattern, url))
}

function matches(pattern: string, { host, hostname }: URL): boolean {
  if (!pattern.startsWith('*.')) return pattern === host || pattern === hostname
  const suffix = pattern.slice(1)
  return host.endsWith(suffix) || hostname.endsWith(suffix)
}

/**
 * Whether a host is written as a loopback or private address (RFC 1918, RFC 4193, link-local) or is `localhost`. Names
 * are not looked up, so a stranger's name that resolves to a private address is a stranger's.
 */
export function isPrivateHost({ hostname }: URL): boolean {
  if (hostname === 'localhost' || hostname.endsWith('.localhost')) return true
  const address = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  switch (isIP(address)) {
    case 4:
      return isPrivateIPv4(address)
    case 6:
      return isPrivateIPv6(address)
    default:
      return false
  }
}

function isPrivateIPv4(address: string): boolean {
  const [first = 0, second = 0] = address.split('.').map(Number)
  if (first === 10 || first === 127) return true
  if (first === 172) return second >= 16 && second <= 31
  return (first === 192 && second === 168) || (first === 169 && second === 254)
}

/** URL writes IPv6 in its shortest form, and IPv4 inside it in hexadecimal. */
function isPrivateIPv6(address: string): boolean {
  const mapped = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/.exec(address)
  if (mapped !== null) {
    const high = Number.parseInt(mapped[1] ?? '', 16)
    return isPrivateIPv4(`${high >> 8}.${high & 255}.0.0`)
  }
  return address === '::1' || /^f[cd][\da-f]{2}:/.test(address) || /^fe[89ab][\da-f]:/.test(address)
}
