import { deadline } from '@timebudget/express'
import { NestFactory } from '@nestjs/core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { keepsItsDeadline } from './http-recipe.ts'
import { prepareEnvironment } from './in-this-process.ts'
import { layers, LayeredModule, layersThatSawTheDeadline } from './nest-layers.ts'

describe('NestJS on Express', () => {
  keepsItsDeadline(
    async (indexUrl) => {
      const faults = prepareEnvironment(indexUrl)
      const { app } = await import('../src/nest-express.ts')
      return { url: await app.getUrl(), faults, close: () => app.close() }
    },
    { routeBudget: 800, parsesBodies: true },
  )
})

test('guards, interceptors, pipes and handlers of NestJS on Express see the deadline', async () => {
  const app = await NestFactory.create(LayeredModule, { logger: false })
  onTestFinished(() => app.close())
  app.use(deadline())
  await app.listen(0)

  expect(await layersThatSawTheDeadline(app)).toEqual(layers)
})
