import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { get, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { MetricsOptions } from '@timebudget/otel'
import { nodeMatrix } from '../support/node-matrix.ts'
import { requireOrSkip } from '../support/requirements.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Where the line of OpenTelemetry's SDK is that needs Node 22.15. */
const newerSdk = `${root}node_modules/.cache/timebudget-otel3`

/** How a service is started. */
export interface MeteredOptions {
  /** The Node to run it on; this one. */
  readonly node?: string | undefined
  /** The folder of its SDK; the repository's own. */
  readonly sdk?: string | undefined
  readonly options?: MetricsOptions | undefined
}

/** A service in a process of its own that records metrics; see metered-service.mjs. */
export interface MeteredService {
  readonly port: number
  /** What it exports for Prometheus. */
  metrics(): Promise<string>
  /** Calls it; gives the status. */
  call(path: string, headers?: Readonly<Record<string, string>>, method?: string): Promise<number>
  /** Calls it and leaves as soon as it has begun. */
  callAndLeave(path: string): Promise<void>
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Starts a service, and waits until it listens. */
export async function meteredService({
  node,
  sdk = root,
  options,
}: MeteredOptions = {}): Promise<MeteredService> {
  const child = fork(
    fileURLToPath(new URL('metered-service.mjs', import.meta.url)),
    [JSON.stringify({ sdk, options })],
    { execArgv: [], execPath: node ?? process.execPath },
  )
  const exited = once(child, 'exit')
  const [{ port }] = (await Promise.race([
    once(child, 'message'),
    exited.then(() => Promise.reject(new Error('the service did not start'))),
  ])) as [{ port: number }]
  // each call on a connection of its own: a service may close one after it has answered for want of time
  const own = { host: '127.0.0.1', port, agent: false } as const

  const call: MeteredService['call'] = async (path, headers = {}, method = 'GET') => {
    const asked = request({ ...own, path, headers, method })
    asked.end()
    const [response] = await once(asked, 'response')
    response.resume()
    await once(response, 'end')
    return response.statusCode
  }
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  return {
    port,
    async metrics() {
      const [response] = await once(get({ ...own, path: '/metrics' }), 'response')
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      return text
    },
    call,
    async callAndLeave(path) {
      const leaving = request({ ...own, path }).on('error', () => undefined)
      leaving.end()
      await once(leaving, 'socket')
      await new Promise((resolve) => setTimeout(resolve, 100))
      leaving.destroy()
      await new Promise((resolve) => leaving.once('close', resolve))
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** Makes everything happen at least once that the metrics tell of. */
export async function provokeEverything(service: MeteredService): Promise<void> {
  await service.call('/quote', { 'x-request-timeout-ms': '4000' })
  await service.call('/quote', {
    'x-request-timeout-ms': '4000',
    'x-request-deadline': String(Date.now() + 4_000 + 300),
  })
  await service.call('/quote', { 'x-request-timeout-ms': 'soon' })
  await service.call('/hangs', { 'x-request-timeout-ms': '50' })
  await service.callAndLeave('/hangs')
  await service.call('/deaf')
  await service.call('/next')
  for (const model of ['quick', 'silent', 'stalls']) await service.call(`/ask/${model}`)
  await service.call('/resilience', {}, 'POST')
}

/** The SDK's two lines, the newer one on a Node that it runs on. */
export const sdkLines: ReadonlyArray<{
  readonly line: string
  start(context: { skip(note: string): never }): Promise<MeteredService>
}> = [
  { line: '2.12 and 0.223', start: () => meteredService() },
  {
    line: '3.1 and 0.301',
    start: (context: { skip(note: string): never }) => {
      const node = nodeMatrix().find(({ version }) => version.startsWith('24.'))?.path
      requireOrSkip(context, existsSync(newerSdk) || undefined, 'node scripts/install-apart.mjs')
      return meteredService({
        node: requireOrSkip(context, node, 'node scripts/install-node-matrix.mjs'),
        sdk: newerSdk,
      })
    },
  },
]
