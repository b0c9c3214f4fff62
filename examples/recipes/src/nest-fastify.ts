import 'reflect-metadata'
import type { IncomingMessage } from 'node:http'
import { fetch } from '@timebudget/clients/fetch'
import { openRequestOf } from '@timebudget/core/server'
import { deadline } from '@timebudget/fastify'
import { type ArgumentsHost, Catch, Controller, Get, Inject, Injectable, Module, Query } from '@nestjs/common'
import { BaseExceptionFilter, HttpAdapterHost, NestFactory } from '@nestjs/core'
import { FastifyAdapter, type NestFastifyApplication, RouteConfig } from '@nestjs/platform-fastify'

@Injectable()
class SearchService {
  async find(words: string): Promise<unknown> {
    const answer = await fetch(`${process.env['INDEX_URL']}/search?q=${encodeURIComponent(words)}`)
    return answer.json()
  }
}

@Controller('search')
class SearchController {
  constructor(@Inject(SearchService) private readonly search: SearchService) {}

  @Get()
  @RouteConfig({ deadline: '800ms' }) // tighter than the whole application's
  find(@Query('q') words: string): Promise<unknown> {
    return this.search.find(words)
  }
}

@Module({ controllers: [SearchController], providers: [SearchService] })
class AppModule {}

/** Answers errors of ours with their own status, and leaves all others to Nest, which would make them 500. */
@Catch()
class DeadlineFilter extends BaseExceptionFilter {
  override catch(error: unknown, host: ArgumentsHost): void {
    const { raw } = host.switchToHttp().getRequest<{ raw: IncomingMessage }>()
    if (openRequestOf(raw)?.fail(error) !== true) super.catch(error, host)
  }
}

export const app: NestFastifyApplication = await NestFactory.create(AppModule, new FastifyAdapter())
await app.register(deadline, { default: '3s', max: '60s' })
app.useGlobalFilters(new DeadlineFilter(app.get(HttpAdapterHost).httpAdapter))
await app.listen(process.env['PORT'] ?? 3000)
