/** What a terminal can show. */
export interface Look {
  /** How many characters fit in a line. */
  readonly columns: number
  readonly colour: boolean
  /** Whether bars and lines may be drawn with more than ASCII. */
  readonly unicode: boolean
}

const fewestColumns = 40
const mostColumns = 160

/**
 * What the stream can show. Heeds NO_COLOR, FORCE_COLOR and TERM; the width is the terminal's, else that of COLUMNS, else
 * 80; no Unicode where the locale names an encoding, or `C`, that has none.
 */
export function lookOf(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  env: Readonly<Record<string, string | undefined>>,
): Look {
  const columns = (stream.columns ?? 0) > 0 ? stream.columns : Number.parseInt(env['COLUMNS'] ?? '', 10)
  return {
    columns: Math.min(mostColumns, Math.max(fewestColumns, columns || 80)),
    colour: hasColour(stream.isTTY === true, env),
    unicode: hasUnicode(env),
  }
}

function hasColour(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): boolean {
  if (isSet(env['NO_COLOR'])) return false
  if (isSet(env['FORCE_COLOR'])) return env['FORCE_COLOR'] !== '0'
  return isTerminal && env['TERM'] !== 'dumb'
}

function hasUnicode(env: Readonly<Record<string, string | undefined>>): boolean {
  // the console of Linux itself has no eighths of blocks
  if (env['TERM'] === 'dumb' || env['TERM'] === 'linux') return false
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find(isSet)
  return locale === undefined || /utf-?8/i.test(locale)
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== ''
}
