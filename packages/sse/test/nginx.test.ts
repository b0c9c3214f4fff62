import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, type TestContext } from 'vitest'
import { dyingWithUs } from '../../../test/support/dying-with-us.ts'
import { freePort } from '../../../test/support/free-port.ts'
import { findProgram, requireOrSkip } from '../../../test/support/requirements.ts'
import { type EventStream, sse } from '../src/index.ts'
import { aborted, listen, onEnd, open, pause, signal } from './support/server.ts'

/** nginx in front of a server, with nothing set but where to pass requests on to, and that it compresses. */
async function behindNginx(context: TestContext, upstream: string): Promise<string> {
  const program = requireOrSkip(
    context,
    findProgram('nginx') ?? ['/usr/sbin/nginx'].find((path) => existsSync(path)),
    'apt-get install nginx-light',
  )
  const folder = mkdtempSync(join(tmpdir(), 'timebudget-nginx-'))
  const port = await freePort()
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  )
  const config = `
    daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
    events {}
    http {
      access_log off; ${paths.join(' ')}
      gzip on; gzip_proxied any; gzip_types text/event-stream; gzip_min_length 1;
      server { listen 127.0.0.1:${port}; location / { proxy_pass ${upstream}; } }
    }`
  writeFileSync(join(folder, 'nginx.conf'), config)
  const [first = program, ...rest] = [
    ...dyingWithUs(),
    ...[program, '-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')],
  ]
  const server = spawn(first, rest, { stdio: 'ignore' })
  const exited = once(server, 'exit')
  onEnd(async () => {
    server.kill('SIGTERM')
    await exited
    rmSync(folder, { recursive: true, force: true })
  })
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    const isUp = await Promise.race([
      once(socket, 'connect'),
      once(socket, 'close').then(() => undefined),
    ]).catch(() => undefined)
    socket.destroy()
    if (isUp !== undefined) return `http://127.0.0.1:${port}`
    await pause(25)
  }
  throw new Error('nginx did not start')
}

test('nginx with its default proxy settings hands on each event and heartbeat as it is sent', async (context) => {
  const streams = signal<EventStream>()
  const upstream = await listen((_request, response) => streams.resolve(sse(response, { heartbeat: 50 })))
  const client = await open(await behindNginx(context, upstream))
  await client.until(/(event: heartbeat\n[^]*){3}/)
  const stream = await streams.promise
  for (const token of ['first', 'second', 'third']) {
    await stream.token(token)
    await client.until(new RegExp(`"${token}"`))
  }
  await client.until(/third[^]*:\n\n:\n\n/)
  await stream.done()
  expect(await client.ended).toBe('whole')
})

test('a client that leaves nginx ends the work behind it', async (context) => {
  const reason = signal<unknown>()
  const upstream = await listen((_request, response) => {
    void aborted(sse(response, { heartbeat: 50 }).signal).then(reason.resolve)
  })
  const client = await open(await behindNginx(context, upstream))
  await client.until(/heartbeat/)
  client.leave()
  expect(await reason.promise).toMatchObject({ code: 'CLIENT_CLOSED' })
})
