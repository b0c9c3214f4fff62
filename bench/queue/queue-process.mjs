// Standing in line under a deadline: DeadlineQueue and p-queue, which can be made to go by deadline too.
import { Deadline } from '@timebudget/core'
import { DeadlineQueue } from '@timebudget/resilience'
import PQueue from 'p-queue'
import { serve } from '../support/worker.mjs'

const budget = 3_600_000

/** The earliest deadline first, in a binary heap: the fastest order that p-queue can be given. */
class ByDeadline {
  heap = []

  get size() {
    return this.heap.length
  }

  enqueue(run, { deadline, ...options } = {}) {
    const item = { run, at: deadline, options }
    const heap = this.heap
    let index = heap.length
    heap.push(item)
    while (index > 0) {
      const above = (index - 1) >> 1
      if (heap[above].at <= item.at) break
      heap[index] = heap[above]
      index = above
    }
    heap[index] = item
  }

  dequeue() {
    const heap = this.heap
    const first = heap[0]
    const last = heap.pop()
    if (heap.length === 0) return first?.run
    let index = 0
    for (;;) {
      let below = 2 * index + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && heap[below + 1].at < heap[below].at) below += 1
      if (heap[below].at >= last.at) break
      heap[index] = heap[below]
      index = below
    }
    heap[index] = last
    return first.run
  }

  filter() {
    return []
  }
}

const nothing = () => undefined

/** Deadlines in no order, the same for both. */
function deadlines(count) {
  let seed = 1
  return Array.from({ length: count }, () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return budget + (seed % 600_000)
  })
}

/** Lets `count` come under deadlines of their own, waits in line with them, and lets all go. CPU nanoseconds for each. */
async function costOf(count, { open, come }) {
  const under = deadlines(count).map((budget) => Deadline.after(budget))
  const { queue, release } = await open()
  const before = process.cpuUsage()
  const all = under.map((deadline) => come(queue, deadline))
  release()
  await Promise.all(all)
  const { user, system } = process.cpuUsage(before)
  for (const deadline of under) deadline.settle()
  return ((user + system) * 1000) / count
}

const ours = {
  async open() {
    const queue = new DeadlineQueue({ slots: 1, estimate: 0.001, maxWaiting: Infinity })
    const holder = await queue.acquire()
    return { queue, release: () => holder.release() }
  },
  come: (queue, deadline) => queue.run(nothing, { deadline }),
}

const theirs = (queueOptions, taskOptions) => ({
  async open() {
    const queue = new PQueue({ concurrency: 1, ...queueOptions })
    let release
    void queue.add(() => new Promise((resolve) => (release = resolve)))
    await Promise.resolve()
    return { queue, release: () => release() }
  },
  come: (queue, deadline) => queue.add(nothing, taskOptions(deadline)),
})

const contestants = {
  DeadlineQueue: ours,
  'p-queue, a heap by deadline': theirs({ queueClass: ByDeadline }, (deadline) => ({
    deadline: deadline.expiresAt,
    signal: deadline.signal,
  })),
  'p-queue, its own priorities': theirs({}, (deadline) => ({
    priority: -deadline.expiresAt,
    signal: deadline.signal,
  })),
  'p-queue, a heap, and nobody can leave': theirs({ queueClass: ByDeadline }, (deadline) => ({
    deadline: deadline.expiresAt,
  })),
}

serve({
  names: () => Object.keys(contestants),
  costOf: ({ count, name }) => costOf(count, contestants[name]),
})
