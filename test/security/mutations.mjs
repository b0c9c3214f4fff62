// Texts that are nearly right: what headers are made of, put together wrongly.

const pieces = [
  ...',;=:."\\ \t\r\n\0%+-\u{a0}é名😀'.split(''),
  ...[
    '0',
    '9',
    '-1',
    '1e3',
    '0x10',
    '00000001',
    '2147483648',
    '9999999999',
    '1767225601000',
    '99999999999999999999',
  ],
  ...[
    'H',
    'M',
    'S',
    'm',
    'u',
    'n',
    'wait=',
    'dur=',
    'desc="ok"',
    'start=',
    'deadline.hop=',
    'deadline.total_ms=',
  ],
  ...[
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'NaN',
    'Infinity',
    'GMT',
    '\r\nSet-Cookie: a=1',
  ],
  ...['event: ', 'data: ', 'id: ', ': ', '\n\n', '?stream=', '%E0%A4%A', '%00', '\ud800'],
]

/** One of the corpus, changed a little, or a lot. */
export function mutated(chance, corpus) {
  let text = chance.oneOf(corpus)
  for (let change = chance.between(1, 4); change > 0; change -= 1) text = changed(chance, { text, corpus })
  return text.slice(0, 20_000)
}

function changed(chance, { text, corpus }) {
  const from = chance.between(0, text.length)
  const to = Math.min(text.length, from + chance.between(0, 8))
  const put = (middle) => text.slice(0, from) + middle + text.slice(to)
  switch (chance.between(0, 6)) {
    case 0:
      return put('')
    case 1:
      return put(String.fromCharCode(chance.between(0, chance.oneOf([127, 255, 65_535]))))
    case 2:
      return put(text.slice(from, to).repeat(chance.between(2, 40)))
    case 3:
      return put(chance.oneOf(corpus))
    case 4:
      return text + chance.oneOf([',', ';', '\n', ' ']) + chance.oneOf(corpus)
    default:
      return put(chance.oneOf(pieces))
  }
}

/** Long texts of one piece, and of two, by which whoever looks back or ahead too far is found. */
export function longTexts(length) {
  const units = [
    ...pieces,
    'wait="',
    'a=b;',
    '",',
    '\\"',
    'a;b="',
    '0.',
    ' ,',
    '1,',
    'data: a\n',
    '1h',
    '%20',
  ]
  return units.map((unit) => unit.repeat(Math.ceil(length / unit.length)).slice(0, length))
}
