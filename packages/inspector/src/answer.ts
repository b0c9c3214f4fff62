import type { IncomingMessage, ServerResponse } from 'node:http'
import { pageAssets } from './assets.ts'

/** What is sent to whoever asks. */
export interface InspectorAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | string
}

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const always: Readonly<Record<string, string>> = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
}

const plain = { 'content-type': 'text/plain; charset=utf-8' }

export const notFound: InspectorAnswer = { status: 404, headers: plain, body: 'Not Found\n' }

export const wrongMethod: InspectorAnswer = {
  status: 405,
  headers: { ...plain, allow: 'GET, HEAD' },
  body: 'Method Not Allowed\n',
}

/** To the folder that the page's files are in, however a proxy calls it. */
export function redirectInto(segment: string): InspectorAnswer {
  return { status: 308, headers: { ...plain, location: `${segment}/` }, body: '' }
}

export function jsonAnswer(value: unknown): InspectorAnswer {
  const body = JSON.stringify(value)
  return { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body }
}

/** A file of the page by its name; the page itself by none. */
export function assetAnswer(name: string): InspectorAnswer {
  try {
    const asset = pageAssets().get(name === '' ? 'page.html' : name)
    if (asset === undefined) return notFound
    return { status: 200, headers: { 'content-type': asset.type }, body: asset.body }
  } catch {
    const body =
      'The files of the inspector are not beside its code: leave @timebudget/inspector out of the bundle.\n'
    return { status: 500, headers: plain, body }
  }
}

/** Sends it, unless the request has been answered by then. */
export function send(request: IncomingMessage, response: ServerResponse, answer: InspectorAnswer): void {
  if (response.headersSent || response.writableEnded || response.destroyed) return
  const { status, headers, body } = answer
  response.writeHead(status, {
    ...always,
    ...headers,
    'content-length': String(Buffer.byteLength(body)),
    // a page that is left open asks again and again: its connection must not hold a server that closes
    ...(request.httpVersionMajor === 1 ? { connection: 'close' } : {}),
  })
  if (request.method === 'HEAD') response.end()
  else response.end(body)
}
