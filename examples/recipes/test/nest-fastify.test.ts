import { deadline } from '@timebudget/fastify'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { keepsItsDeadline } from './http-recipe.ts'
import { prepareEnvironment } from './in-this-process.ts'
import { LayeredModule, layers, layersThatSawTheDeadline } from './nest-layers.ts'

describe('NestJS on Fastify', () => {
  keepsItsDeadline(
    async (indexUrl) => {
      const faults = prepareEnvironment(indexUrl)
      const { app } = await import('../src/nest-fastify.ts')
      return { url: await app.getUrl(), faults, close: () => app.close() }
    },
    { routeBudget: 800 },
  )
})

test('guards, interceptors, pipes and handlers of NestJS on Fastify see the deadline', async () => {
  const app = await NestFactory.create<NestFastifyApplication>(LayeredModule, new FastifyAdapter(), {
    logger: false,
  })
  onTestFinished(() => app.close())
  await app.register(deadline)
  await app.listen(0)

  expect(await layersThatSawTheDeadline(app)).toEqual(layers)
})
