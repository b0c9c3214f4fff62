// Who listens holds nothing but a signal: those it was derived from are dropped and collected.
import { setTimeout as delay } from 'node:timers/promises'
import { Deadline, operation } from '@timebudget/core'

const heard = {}

function note(name, signal) {
  heard[name] = false
  signal.addEventListener('abort', () => {
    heard[name] = true
  })
}

const foreign = new AbortController()
const settled = Deadline.after('1m')

note('a grandchild', Deadline.after(150).child({ timeout: '1m' }).child({}).signal)
note('a child with a timeout', Deadline.after('1m').child({ timeout: 150 }).signal)
note('a child under a foreign signal', Deadline.after('1m', { signal: foreign.signal }).child({}).signal)
note(
  'an endless child under a foreign signal',
  Deadline.after(Infinity, { signal: foreign.signal }).child({}).signal,
)
note(
  'a deadline that follows another’s signal',
  Deadline.after('1m', { signal: Deadline.after(150).signal }).signal,
)
operation('x', { timeout: 150 }, ({ signal }) => {
  note('an operation', signal)
  return new Promise(() => undefined)
}).catch(() => undefined)
{
  const middle = settled.child({})
  note('a child of a settled child', middle.child({}).signal)
  middle.settle()
}

for (let round = 0; round < 10; round += 1) {
  globalThis.gc()
  await delay(20)
}
foreign.abort()
settled.cancel()
for (let round = 0; round < 50 && Object.values(heard).includes(false); round += 1) await delay(20)
process.stdout.write(JSON.stringify(heard))
