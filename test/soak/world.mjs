/* oxlint-disable typescript/prefer-readonly -- JavaScript has no readonly */
// A chain of hops with its upstream, the rounds of requests that are sent through it, and what must hold afterwards.
import { setTimeout as sleep } from 'node:timers/promises'
import { Books } from './books.mjs'
import { hangUp, send } from './client.mjs'
import { freePort, HopProcess } from './hop-process.mjs'
import { planMishaps, planRequest } from './plan.mjs'
import { startUpstream } from './upstream.mjs'

/** Milliseconds for everything that was begun to end by itself; the longest budget is 8 s. */
const rest = 30_000

/**
 * Pooled connections, and a few timers of undici's, keep the async context they were made in, with its deadlines: a hop of
 * 15 to 21 connections held 50 to 118, after 50 requests as after 800, and up to 32 once all connections had been closed.
 */
const mostDeadlines = { elsewhere: 40, ofConnection: 8 }

export class World {
  books = new Books()
  faults = []
  requests = 0
  mishaps = { kill: 0, freeze: 0 }
  hops = []
  #measures = []
  #upstream

  static async start(chain) {
    const world = new World()
    world.#upstream = await startUpstream()
    let next = world.#upstream.url
    for (const { name, framework, options } of chain.toReversed()) {
      const port = await freePort()
      const hop = new HopProcess({ name, framework, options, next, port }, (event, details) => {
        world.#hear(hop, name, { event, details })
      })
      next = hop.url
      world.hops.unshift(hop)
    }
    await Promise.all(world.hops.map((hop) => hop.start()))
    return world
  }

  /** Sends so many requests within that many milliseconds, lets mishaps happen, waits until all is quiet, and checks. */
  async round(chance, { number, requests, within }) {
    const mishaps = planMishaps(chance, { hops: this.hops.length, within })
    const plans = Array.from({ length: requests }, (_, index) =>
      planRequest(chance.fork(), { id: `${number}-${index}`, hops: this.hops.length, within }),
    )
    const sent = plans.map(async (plan) => {
      await sleep(plan.at)
      this.books.called(await send(this.hops[0].url, plan))
    })
    await Promise.all([...sent, ...mishaps.map((mishap) => this.#befall(mishap))])
    this.requests += requests
    await this.#quiet(number)
    const killed = mishaps.some(({ kind }) => kind === 'kill')
    for (const fault of this.books.close({ killed })) this.#fault(`round ${number}: ${fault}`)
    await this.#measure()
  }

  /** Ends all hops; each shows that it holds nothing, and ends by itself. */
  async finish() {
    hangUp()
    for (const [index, hop] of this.hops.entries()) {
      const census = await hop.finish()
      const { accounts, deadlines, resources, how, listeners } = census
      const made = [accounts.requestsMade, accounts.operationsMade, accounts.deadlinesMade]
      const ended = [accounts.requestsEnded, accounts.operationsEnded, accounts.deadlinesSettled]
      const name = `hop${index + 1}`
      if (String(made) !== String(ended)) this.#fault(`${name} made ${made.join()} and ended ${ended.join()}`)
      if (deadlines > mostDeadlines.elsewhere) this.#fault(`${name} holds ${deadlines} deadlines`)
      if (resources.length > 0) this.#fault(`${name} holds ${resources}`)
      if (listeners > 1) this.#fault(`${name} has ${listeners} listeners left`)
      if (how !== 0) this.#fault(`${name} ended: ${how}`)
    }
    this.#compareMeasures()
    this.#upstream.close()
  }

  async #befall({ kind, hop, at, lasts }) {
    await sleep(at)
    this.mishaps[kind] += 1
    if (kind === 'kill') await this.hops[hop].restart()
    else await this.hops[hop].freeze(lasts)
  }

  async #quiet(number) {
    const until = performance.now() + rest
    for (;;) {
      const open = await Promise.all(this.hops.map((hop) => hop.ask('open', 'open')))
      const count = open.reduce((sum, { count: some }) => sum + some, this.books.open + this.#upstream.open)
      if (count === 0) return
      if (performance.now() > until) {
        const where = `${open.map(({ count: some }) => some).join()}, of the upstream ${this.#upstream.open}`
        this.#fault(`round ${number}: requests, operations and deadlines left open by each hop: ${where}`)
        return
      }
      await sleep(50)
    }
  }

  async #measure() {
    const measured = await Promise.all(this.hops.map((hop) => hop.ask('measure', 'measured')))
    this.#measures.push(measured.map((measure, index) => ({ ...measure, life: this.hops[index].lives })))
  }

  /** A life's memory and listeners once warm, from its fourth round on, against those of its last round. */
  #compareMeasures() {
    for (const index of this.hops.keys()) {
      for (const measures of groupByLife(this.#measures, index).values()) {
        const [, , , warm] = measures
        const last = measures.at(-1)
        if (warm === undefined || last === warm) continue
        const name = `hop${index + 1}`
        if (last.heap > warm.heap * 1.3 + 6e6)
          this.#fault(`${name} grew from ${warm.heap} to ${last.heap} bytes`)
        const most = mostDeadlines.elsewhere + mostDeadlines.ofConnection * last.connections
        if (last.deadlines > most) {
          this.#fault(`${name} holds ${last.deadlines} deadlines by ${last.connections} connections`)
        }
        if (last.listeners > 12) this.#fault(`${name} has ${last.listeners} listeners on one thing`)
      }
    }
  }

  #hear(hop, name, { event, details }) {
    if (event === 'started') this.books.started(details, hop)
    else if (event === 'finished') this.books.finished(details)
    else if (event === 'called') this.books.called(details)
    else if (event === 'wrong') this.#fault(`${name}: ${details.what}`)
    else if (event === 'exited' && details.signal !== 'SIGKILL' && details.code !== 0) {
      this.#fault(`${name} died: ${details.code ?? details.signal}`)
    }
  }

  #fault(what) {
    this.faults.push(what)
  }
}

function groupByLife(measures, index) {
  const lives = new Map()
  for (const round of measures) {
    const { life } = round[index]
    lives.set(life, [...(lives.get(life) ?? []), round[index]])
  }
  return lives
}
