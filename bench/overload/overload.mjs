// A chain that gets twice what it can do, in real processes: users, a gateway, an engine with slots.
import { fileURLToPath } from 'node:url'
import { withWorkers } from '../support/worker.mjs'
import { arrivals, mean, patience, slots } from './load-shape.mjs'

const fileOf = (name) => fileURLToPath(new URL(`${name}-process.mjs`, import.meta.url))

/** How gateway and engine go about it. */
const policies = {
  'no timeouts': { gateway: 'none', engine: 'deaf' },
  'static timeouts': { gateway: 'static', engine: 'deaf' },
  'the deadline propagated': { gateway: 'propagated', engine: 'heeding' },
  'and a DeadlineQueue': { gateway: 'propagated', engine: 'queueing' },
}

export async function runOverload({ node, quick }) {
  const load = 2
  const all = arrivals({ seconds: quick ? 5 : 30, load })
  const measured = new Map()
  for (const [name, policy] of Object.entries(policies)) {
    measured.set(name, await withWorkers((start) => runPolicy(policy, { start, node, all })))
  }
  return [
    {
      title: `${load} times what ${slots} slots can do; work of ${mean} ms, patience of ${patience} ms`,
      rows: [...measured].map(([name, figures]) => rowOf(name, { figures, measured })),
    },
  ]
}

async function runPolicy(policy, { start, node, all }) {
  const startOn = (name, ...args) => start(fileOf(name), { node: node.path, args })
  const engine = await startOn('engine', policy.engine)
  const gateway = await startOn('gateway', policy.gateway, String(await engine.ask('port')))
  const users = await startOn('users')
  const { answered, seconds } = await users.ask('run', { port: await gateway.ask('port'), all })
  return { answered, goodput: answered / seconds, asked: all.length, ...(await engine.ask('spent')) }
}

function rowOf(name, { figures, measured }) {
  const { answered, asked, goodput, all, unwaited, missed } = figures
  const shares = { unwaited: (100 * unwaited) / all, missed: (100 * missed) / all }
  const static_ = measured.get('static timeouts').goodput
  const propagated = measured.get('the deadline propagated').goodput
  const targets = {
    'static timeouts': [{ of: 'after nobody waits, %', value: shares.unwaited, least: 60 }],
    'the deadline propagated': [{ of: 'after nobody waits, %', value: shares.unwaited, most: 1 }],
    'and a DeadlineQueue': [
      { of: 'after nobody waits, %', value: shares.unwaited, most: 1 },
      { of: 'for answers too late, %', value: shares.missed, most: 12 },
      { of: 'goodput, of propagation', value: goodput / propagated, least: 1.3 },
      { of: 'goodput, of static timeouts', value: goodput / Math.max(static_, 0.001), least: 3 },
    ],
  }
  return {
    name,
    figures: {
      'answered in time': `${answered} of ${asked}`,
      'goodput/s': goodput,
      'slot seconds': all,
      'after nobody waits, %': shares.unwaited,
      'for answers too late, %': shares.missed,
    },
    targets: targets[name],
  }
}
