// Where a blocking command says how long it may: in seconds as its last or first argument, or in milliseconds.
const secondsLast: ReadonlySet<string> = new Set([
  'blpop',
  'brpop',
  'brpoplpush',
  'blmove',
  'bzpopmin',
  'bzpopmax',
])
const secondsFirst: ReadonlySet<string> = new Set(['blmpop', 'bzmpop'])
const millisecondsLast: ReadonlySet<string> = new Set(['wait', 'waitaof'])
const withBlockOption: ReadonlySet<string> = new Set(['xread', 'xreadgroup'])

/**
 * The arguments of a command, with which it blocks for `left` milliseconds at the most: else the server would hold the
 * connection, and hand what arrives to a caller who is gone.
 */
export function noLongerThan(left: number, name: string, args: unknown[]): unknown[] {
  if (left === Infinity) return args
  const command = name.toLowerCase().replace(/buffer$/, '')
  const milliseconds = Math.max(1, Math.floor(left))
  if (secondsLast.has(command)) return shortened(args, args.length - 1, milliseconds / 1000)
  if (secondsFirst.has(command)) return shortened(args, 0, milliseconds / 1000)
  if (millisecondsLast.has(command)) return shortened(args, args.length - 1, milliseconds)
  if (withBlockOption.has(command)) return blockingNoLonger(args, milliseconds)
  if (command === 'call' || command === 'send_command') {
    const [called, ...rest] = args
    return typeof called === 'string' ? [called, ...noLongerThan(left, called, rest)] : args
  }
  if (command === 'sendcommand' && Array.isArray(args[0])) {
    const [called, ...rest]: unknown[] = args[0]
    // node-redis sends text
    const texts = noLongerThan(left, String(called), rest).map((value) =>
      typeof value === 'number' ? String(value) : value,
    )
    return [[called, ...texts], ...args.slice(1)]
  }
  return args
}

/** ioredis takes the words of the protocol, node-redis an object. */
function blockingNoLonger(args: unknown[], milliseconds: number): unknown[] {
  const word = args.findIndex(
    (argument) => typeof argument === 'string' && argument.toLowerCase() === 'block',
  )
  if (word !== -1) return shortened(args, word + 1, milliseconds)
  return args.map((argument) =>
    typeof argument === 'object' && argument !== null && 'BLOCK' in argument
      ? { ...argument, BLOCK: shorter(argument.BLOCK, milliseconds) }
      : argument,
  )
}

function shortened(args: unknown[], index: number, limit: number): unknown[] {
  return index in args ? args.with(index, shorter(args[index], limit)) : args
}

/** 0 blocks for ever; what is no number is left to the server to refuse. */
function shorter(own: unknown, limit: number): unknown {
  const wanted = typeof own === 'number' || (typeof own === 'string' && own !== '') ? Number(own) : Number.NaN
  if (Number.isNaN(wanted)) return own
  return wanted === 0 || wanted > limit ? limit : own
}
