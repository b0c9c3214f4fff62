// A client at the entry: plain node:http, as a browser or a stranger's service would be.
import { Agent, request as httpRequest } from 'node:http'
import { viewOfAnswer, viewOfFailure } from './views.mjs'

const agent = new Agent({ keepAlive: true })

/** Sends a planned request and tells how it ended for its client. */
export function send(url, plan) {
  const { id, steps, upstream, budget, leavesAfter } = plan
  return new Promise((resolve) => {
    let left = false
    const settle = (view) => {
      clearTimeout(leaving)
      resolve({ id, at: Date.now(), client: 'entry', ...view })
    }
    const request = httpRequest(url, {
      agent,
      headers: {
        'x-soak-id': id,
        'x-soak-plan': JSON.stringify({ id, steps, upstream }),
        ...(budget === undefined
          ? {}
          : { 'x-request-timeout-ms': budget, 'x-request-deadline': Date.now() + budget }),
      },
    })
    const leaving =
      leavesAfter === undefined
        ? undefined
        : setTimeout(() => {
            left = true
            request.destroy(new Error('left'))
          }, leavesAfter)
    const failed = (error) => settle(viewOfFailure(error, { left }))
    request.on('error', failed)
    request.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk) => (text += chunk))
      response.on('error', failed)
      response.on('end', () => {
        const { 'x-deadline-outcome': outcome, 'content-type': type = '' } = response.headers
        settle(viewOfAnswer({ status: response.statusCode, outcome, type, text }))
      })
    })
    request.end()
  })
}

/** Lets go of the connections that are kept. */
export function hangUp() {
  agent.destroy()
}
