/* oxlint-disable typescript/prefer-readonly -- JavaScript has no readonly */
// A hop from outside: its process, which is killed, frozen and started anew, and what it has told.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('hop.mjs', import.meta.url))

const flags = ['--expose-gc', '--disable-warning=ExperimentalWarning']

/** A frozen process hears of nothing else than its parent's death. */
const dyingWithUs = existsSync('/usr/bin/setpriv') ? ['/usr/bin/setpriv', '--pdeathsig=KILL'] : []

export class HopProcess {
  #settings
  #child
  #tell
  #waiting = new Map()
  /** How often it was started. */
  lives = 0

  /** `tell` hears of everything it says: (event, details). */
  constructor(settings, tell) {
    this.#settings = settings
    this.#tell = tell
  }

  get url() {
    return `http://127.0.0.1:${this.#settings.port}/`
  }

  get port() {
    return this.#settings.port
  }

  async start() {
    this.lives += 1
    const [program, ...rest] = [...dyingWithUs, process.execPath, ...flags, script]
    this.#child = spawn(program, [...rest, JSON.stringify(this.#settings)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, NODE_OPTIONS: '' },
    })
    this.#child.on('message', ({ event, ...details }) => {
      this.#waiting.get(event)?.(details)
      this.#waiting.delete(event)
      this.#tell(event, details)
    })
    this.#child.on('exit', (code, signal) => this.#tell('exited', { code, signal }))
    const died = once(this.#child, 'exit').then(() => {
      throw new Error('a hop died before it listened')
    })
    died.catch(() => undefined)
    await Promise.race([this.#hear('listening'), died])
  }

  async kill() {
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }

  async restart() {
    await this.kill()
    await this.start()
  }

  async freeze(milliseconds) {
    this.#child.kill('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, milliseconds))
    this.#child.kill('SIGCONT')
  }

  /** Asks it something; resolves with what it answers. */
  ask(order, event) {
    const answer = this.#hear(event)
    this.#child.send(order)
    return answer
  }

  /** Lets it finish: its census, and `exited: true` if it then ended by itself. */
  async finish() {
    const ended = once(this.#child, 'exit')
    const census = await this.ask('finish', 'census')
    const patience = new AbortController()
    const late = new Promise((resolve) => {
      const timer = setTimeout(resolve, 10_000, 'still running')
      patience.signal.addEventListener('abort', () => clearTimeout(timer))
    })
    const how = await Promise.race([ended.then(([code, signal]) => code ?? signal), late])
    patience.abort()
    if (how === 'still running') await this.kill()
    return { ...census, how }
  }

  #hear(event) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`a hop said no '${event}' within a minute`)), 60_000)
      this.#waiting.set(event, (details) => {
        clearTimeout(timer)
        resolve(details)
      })
    })
  }
}

/** A port that a hop keeps over all its lives. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
