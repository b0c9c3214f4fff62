// Writes the tables of figures into the READMEs, between their marks, from bench/figures.json, which `npm run bench -- --save` writes;
// with --check it only fails where they are others.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const { tables } = JSON.parse(readFileSync(`${root}bench/figures.json`, 'utf8'))
const nodes = ['20', '22', '24', '26']

const costs = [
  ['node:http: a hello world', 'timebudget', '`node:http`'],
  ['node:http: a hello world', 'AsyncLocalStorage.run alone', '', '`AsyncLocalStorage` alone'],
  ['Express: a hello world', 'timebudget', 'Express'],
  ['Express: a hello world', 'connect-timeout', '', 'connect-timeout'],
  ['Koa: a hello world', 'timebudget', 'Koa'],
  ['Koa: a hello world', 'koa-timeout-v2', '', 'koa-timeout-v2'],
  ['Fastify: a hello world', 'timebudget', 'Fastify'],
  ['Fastify: a hello world', 'handlerTimeout', '', '`handlerTimeout`'],
  ['node:http: a call', 'timebudget', '`node:http`', undefined, 'calls'],
  ['node:http: a call', 'AbortSignal.timeout', '', '`AbortSignal.timeout`', 'calls'],
  ['undici.request: a call', 'timebudget', '`undici.request`', undefined, 'calls'],
  ['undici.request: a call', 'AbortSignal.timeout', '', '`AbortSignal.timeout`', 'calls'],
  ['fetch: a call', 'timebudget, fetch', '`fetch`', undefined, 'calls'],
  ['fetch: a call', 'AbortSignal.timeout', '', '`AbortSignal.timeout`', 'calls'],
]

const policies = ['no timeouts', 'static timeouts', 'the deadline propagated', 'and a DeadlineQueue']

const languages = {
  'README.md': {
    cost: 'CPU, of the bare one’s',
    served: 'a request',
    calls: 'a call',
    alone: 'with',
    overload: ['twice what can be done', 'in time', 'slot seconds for nobody'],
    policies: ['no timeouts', 'static timeouts', 'one deadline, propagated', 'and a `DeadlineQueue`'],
    of: (done, all) => `${done} of ${all}`,
  },
  'README.zh-CN.md': {
    cost: 'CPU，不用时为 1',
    served: '处理请求',
    calls: '对外调用',
    alone: '换用',
    overload: ['负载为处理能力的两倍', '按时', '白费的槽位秒数'],
    policies: ['没有超时', '固定超时', '统一截止时间，逐跳传递', '再加上 `DeadlineQueue`'],
    of: (done, all) => `${all} 中 ${done}`,
  },
}

for (const [name, words] of Object.entries(languages)) {
  const path = root + name
  const before = readFileSync(path, 'utf8')
  const after = put(put(before, 'cost', costTable(words)), 'overload', overloadTable(words))
  if (!process.argv.includes('--check')) writeFileSync(path, after)
  else if (after !== before) throw new Error(`${name} has other figures: node scripts/embed-figures.mjs`)
}

function put(text, mark, table) {
  const between = new RegExp(`(<!-- bench: ${mark} -->\n)[^]*?(<!-- /bench -->)`)
  if (!between.test(text)) throw new Error(`there is no mark for ${mark}`)
  return text.replace(between, (_, begin, end) => `${begin}\n${table}\n\n${end}`)
}

function costTable(words) {
  const rows = costs.map(([title, variant, ours, other, kind = 'served']) => {
    const name = ours === '' ? `${words.alone} ${other}` : `${words[kind]}: ${ours}`
    return [name, ...nodes.map((node) => figure({ node, title }, variant, 'CPU, of bare').toFixed(2))]
  })
  return table([words.cost, ...nodes.map((node) => `Node ${node}`)], rows)
}

function overloadTable(words) {
  const rows = policies.map((policy, index) => {
    const of = (column) => figure({ section: 'overload' }, policy, column)
    const wasted = (of('slot seconds') * of('after nobody waits, %')) / 100
    const [done, all] = of('answered in time').split(' of ')
    return [words.policies[index], words.of(done, all), wasted.toFixed(1)]
  })
  return table(words.overload, rows)
}

function figure(of, variant, column) {
  const found = tables.find((each) => Object.entries(of).every(([name, value]) => each[name] === value))
  const value = found?.rows.find(({ name }) => name === variant)?.figures[column]
  if (value === undefined) throw new Error(`bench/figures.json has no ${column} of ${variant}`)
  return value
}

function table(head, rows) {
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...rows]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
