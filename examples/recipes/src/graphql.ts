import { createServer, type Server } from 'node:http'
import { fetch } from '@timebudget/clients/fetch'
import { findTimeBudgetError, operation, type OperationOptions } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { createGraphQLError, createSchema, createYoga } from 'graphql-yoga'
import { batch } from './graphql-batch.ts'

interface Context {
  readonly priceOf: (id: string) => Promise<number | undefined>
}

/** A field that is null, with the reason among the errors, if there is no time for it; the others are answered. */
async function field<T>(name: string, options: OperationOptions, work: () => Promise<T>): Promise<T> {
  try {
    return await operation(name, { reserve: '200ms', ...options }, work) // time to send the other fields
  } catch (error) {
    const ours = findTimeBudgetError(error)
    if (ours === undefined || ours.code === 'UPSTREAM_ERROR') throw error
    throw createGraphQLError(ours.message, { extensions: { code: ours.code } })
  }
}

async function get<T>(path: string): Promise<T> {
  const answer = await fetch(`${process.env['SHOP_URL']}${path}`)
  return answer.json() as T
}

const schema = createSchema<Context>({
  typeDefs: /* GraphQL */ `
    type Query {
      products(ids: [ID!]!): [Product!]!
      total(ids: [ID!]!): Int
    }
    type Product {
      id: ID!
      price: Int
      reviews: [String!]
    }
  `,
  resolvers: {
    Query: {
      products: (_root, { ids }: { ids: readonly string[] }) => ids.map((id) => ({ id })),
      total: (_root, { ids }: { ids: readonly string[] }, { priceOf }) =>
        field('total', {}, async () => {
          const prices = await Promise.all(ids.map(priceOf))
          return prices.reduce<number>((sum, price = 0) => sum + price, 0)
        }),
    },
    Product: {
      price: ({ id }: { id: string }, _args, { priceOf }) =>
        field('price', { timeout: '300ms' }, () => priceOf(id)),
      reviews: ({ id }: { id: string }) => field('reviews', { floor: '50ms' }, () => get(`/reviews/${id}`)),
    },
  },
})

const yoga = createYoga({
  schema,
  context: (): Context => ({ priceOf: batch((ids) => get(`/prices?ids=${ids.join(',')}`)) }),
})

export const server: Server = createServer(withDeadline(yoga, { default: '3s', max: '30s' }))
server.listen(process.env['PORT'] ?? 3000)
