import { createServer, type Server } from 'node:http'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { fetch } from '@timebudget/clients/fetch'
import { type RequestListener, withDeadline } from '@timebudget/core/server'
import { z } from 'zod'

const handler = createMcpHandler(() => {
  const documents = new McpServer({ name: 'documents', version: '1.0.0' })
  documents.registerTool(
    'search',
    { description: 'Searches the documents', inputSchema: z.object({ words: z.string() }) },
    async ({ words }) => {
      const found = await fetch(`${process.env['INDEX_URL']}/search?q=${encodeURIComponent(words)}`)
      return { content: [{ type: 'text', text: await found.text() }] }
    },
  )
  return documents
})

// MCP's types do not fit Node's under exactOptionalPropertyTypes; without it, no `as` is needed
const listener = toNodeHandler(handler) as RequestListener

/** Each call of a tool is a request, and has what its caller has left. */
export const server: Server = createServer(withDeadline(listener, { default: '10s', max: '60s' }))
server.listen(process.env['PORT'] ?? 3001)
