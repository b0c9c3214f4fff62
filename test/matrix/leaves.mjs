// Nothing of this may keep a process alive for the hour it could take.
import { Deadline, operation, startOperation } from '@timebudget/core'

const deadline = Deadline.after('1h')
deadline.signal.addEventListener('abort', () => undefined)
deadline.child({ timeout: '30m' }).signal.addEventListener('abort', () => undefined)
Deadline.after('1h', { signal: new AbortController().signal })
await operation('done', { deadline, timeout: '20m' }, () => 'done')
await operation('failed', { deadline }, () => Promise.reject(new Error('refused'))).catch(() => undefined)
startOperation('ended', { deadline }).end()
startOperation('cancelled', { deadline }).deadline.cancel()
// nearer than all before: the shared timer is set anew, for somebody who holds nobody
Deadline.after('5m').signal.addEventListener('abort', () => undefined)
operation('endless', {}, () => new Promise(() => undefined)).catch(() => undefined)
process.stdout.write(JSON.stringify({ left: true }))
