import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { readlinkSync } from 'node:fs'
import { expect, type TestContext } from 'vitest'
import { findProgram, requireOrSkip } from '../support/requirements.ts'
import type { Place } from './faulty-chain.ts'

/** Machines in a row, each wired to the one before it, as far as the network can tell: Linux's network namespaces. */
export class Namespaces implements Disposable {
  readonly places: Place[] = []
  readonly #holders: ChildProcess[] = []

  /** Only root may lay wires. */
  static async inARow(context: TestContext, count: number): Promise<Namespaces> {
    const canWire = process.getuid?.() === 0 && ['ip', 'unshare', 'nsenter', 'setpriv'].every(findProgram)
    requireOrSkip(context, canWire ? true : undefined, 'run as root, with iproute2 and util-linux')
    const row = new Namespaces()
    // somewhere in the network that is set aside for benchmarks
    const network = `198.18.${Math.floor(Math.random() * 256)}`
    for (let position = 0; position < count; position += 1) {
      const pid = await row.#hold()
      const [before, host] = [`${network}.${4 * position + 1}`, `${network}.${4 * position + 2}`]
      const wire = `tb${pid}`
      row.#ip(position - 1, `link add ${wire} type veth peer name front netns ${pid}`)
      row.#ip(position - 1, `addr add ${before}/30 dev ${wire}`)
      row.#ip(position - 1, `link set ${wire} up`)
      row.places.push({ host, within: ['nsenter', '--target', String(pid), '--net'] })
      row.#ip(position, `addr add ${host}/30 dev front`)
      row.#ip(position, 'link set lo up')
      row.#ip(position, 'link set front up')
    }
    return row
  }

  /** Pulls the cable of one machine, towards the one before it, or plugs it in. */
  wire(position: number, state: 'down' | 'up'): void {
    this.#ip(position, `link set front ${state}`)
  }

  #ip(position: number, command: string): void {
    const within = this.places[position]?.within ?? []
    const [program = 'ip', ...rest] = [...within, 'ip', ...command.split(' ')]
    execFileSync(program, rest)
  }

  /** A namespace lasts as long as a process in it. */
  async #hold(): Promise<number> {
    const command: readonly string[] = ['setpriv', '--pdeathsig=KILL', 'unshare', '--net', 'sleep', '1000']
    const [program = '', ...rest] = command
    const holder = spawn(program, rest)
    this.#holders.push(holder)
    const { pid } = holder
    if (pid === undefined) throw new Error('unshare cannot be started')
    const namespaceOf = (process: string): string => readlinkSync(`/proc/${process}/ns/net`)
    await expect.poll(() => namespaceOf(String(pid)), { timeout: 5_000 }).not.toBe(namespaceOf('self'))
    return pid
  }

  [Symbol.dispose](): void {
    for (const holder of this.#holders) holder.kill('SIGKILL')
  }
}
