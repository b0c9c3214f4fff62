import 'reflect-metadata'
import { fetch } from '@timebudget/clients/fetch'
import { deadline, deadlineErrors } from '@timebudget/express'
import { type ArgumentsHost, Catch, Controller, Get, Inject, Injectable, Module, Query } from '@nestjs/common'
import type { MiddlewareConsumer, NestModule } from '@nestjs/common'
import { BaseExceptionFilter, HttpAdapterHost, NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'

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
  find(@Query('q') words: string): Promise<unknown> {
    return this.search.find(words)
  }
}

@Module({ controllers: [SearchController], providers: [SearchService] })
class AppModule implements NestModule {
  configure(routes: MiddlewareConsumer): void {
    routes.apply(deadline({ default: '800ms' })).forRoutes(SearchController) // tighter than the whole application's
  }
}

/** Answers errors of ours with their own status, and leaves all others to Nest, which would make them 500. */
@Catch()
class DeadlineFilter extends BaseExceptionFilter {
  readonly #answer = deadlineErrors()

  override catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp()
    this.#answer(error, http.getRequest(), http.getResponse(), () => super.catch(error, host))
  }
}

export const app: NestExpressApplication = await NestFactory.create(AppModule)
app.use(deadline({ default: '3s', max: '60s' }))
app.useGlobalFilters(new DeadlineFilter(app.get(HttpAdapterHost).httpAdapter))
await app.listen(process.env['PORT'] ?? 3000)
