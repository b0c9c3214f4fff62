import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { fetch } from '@timebudget/clients/fetch'
import { operation } from '@timebudget/core'
import { dynamicTool, jsonSchema, type ToolSet } from 'ai'

/** Connects to an MCP server, for as long as the process lives: call it at the start, not within a request. */
export async function connect(url: string): Promise<Client> {
  const client = new Client({ name: 'agent', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch }))
  return client
}

/** The server's tools for the AI SDK, each call an operation that leaves the model time to make use of it. */
export async function toolsOf(client: Client): Promise<ToolSet> {
  const { tools } = await client.listTools()
  const entries = tools.map(({ name, description = name, inputSchema }) => {
    const execute = (input: unknown, { abortSignal }: { readonly abortSignal?: AbortSignal }) =>
      operation(
        name,
        { timeout: '2m', floor: '100ms', reserve: '2s', signal: abortSignal },
        // MCP's own timeout is a minute, whatever is left
        async ({ signal, timeout }) => {
          const call = { name, arguments: Object(input) }
          const { content, isError } = await client.callTool(call, { signal, timeout })
          if (isError === true) throw new Error(JSON.stringify(content))
          return content
        },
      )
    return [name, dynamicTool({ description, inputSchema: jsonSchema(inputSchema), execute })] as const
  })
  return Object.fromEntries(entries)
}
