// A process of its own for each thing that is measured, so that neither its garbage nor its compiler meets another's.
import { fork } from 'node:child_process'
import { once } from 'node:events'

/** Starts `file` on a Node binary; it must call `serve`, and is ready once it has. */
async function startWorker(file, { node = process.execPath, args = [], flags = [] } = {}) {
  const child = fork(file, args, { execPath: node, execArgv: flags })
  const waiting = new Map()
  let asked = 0
  child.on('message', ({ id, answer, failure }) => {
    const { resolve, reject } = waiting.get(id)
    waiting.delete(id)
    if (failure === undefined) resolve(answer)
    else reject(new Error(failure))
  })
  child.on('exit', (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`${file} ended with ${code}`))
    waiting.clear()
  })
  const worker = {
    /** What the worker's function of that name returns. */
    ask(what, details) {
      asked += 1
      const id = asked
      child.send({ id, what, details })
      return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
  await worker.ask('ready')
  return worker
}

/** Runs `work` with a function that starts workers, all of which end with it. */
export async function withWorkers(work) {
  const workers = []
  try {
    return await work(async (file, options) => {
      const worker = await startWorker(file, options)
      workers.push(worker)
      return worker
    })
  } finally {
    for (const worker of workers) await worker.stop()
  }
}

/** What a worker's process uses while `work` goes on, in microseconds, and what that comes to. */
export async function cpuOf(worker, work) {
  const before = await worker.ask('cpu')
  const answer = await work()
  return { answer, cpu: (await worker.ask('cpu')) - before }
}

/** The worker's side: answers by name, `ready` and `cpu` besides; ends with the parent. */
export function serve(answers) {
  const all = { ready: () => true, cpu: cpuMicroseconds, ...answers }
  process.on('message', async ({ id, what, details }) => {
    try {
      process.send({ id, answer: await all[what](details) })
    } catch (error) {
      process.send({ id, failure: error.stack ?? String(error) })
    }
  })
  process.once('disconnect', () => process.exit())
}

/** What all threads of this process have used. */
export function cpuMicroseconds() {
  const { user, system } = process.cpuUsage()
  return user + system
}
