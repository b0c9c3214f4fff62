import {
  Body,
  type CallHandler,
  type CanActivate,
  Controller,
  type INestApplication,
  Module,
  type NestInterceptor,
  type PipeTransform,
  Post,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common'
import { currentDeadline } from '@timebudget/core'
import { mergeMap, type Observable } from 'rxjs'

/** Where a request comes by, in this order. */
export const layers = ['guard', 'interceptor', 'pipe', 'handler', 'interceptor, after']

let seen: string[] = []

function note(layer: string): void {
  const deadline = currentDeadline()
  if (deadline !== undefined && deadline.budget <= 700) seen.push(layer)
}

class NotingGuard implements CanActivate {
  canActivate(): boolean {
    note('guard')
    return true
  }
}

class NotingInterceptor implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    note('interceptor')
    return next.handle().pipe(
      mergeMap(async (value: unknown) => {
        note('interceptor, after')
        return value
      }),
    )
  }
}

class NotingPipe implements PipeTransform {
  async transform(value: unknown): Promise<unknown> {
    note('pipe')
    return value
  }
}

@Controller('layers')
@UseGuards(NotingGuard)
@UseInterceptors(NotingInterceptor)
class LayeredController {
  @Post()
  handle(@Body(NotingPipe) body: unknown): unknown {
    note('handler')
    return body
  }
}

/** An application that notes in which of its layers the ambient deadline is there. */
@Module({ controllers: [LayeredController] })
export class LayeredModule {}

/** Posts to it with 700 ms; the layers that saw them. */
export async function layersThatSawTheDeadline(app: INestApplication): Promise<readonly string[]> {
  seen = []
  const answer = await fetch(`${await app.getUrl()}/layers`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-request-timeout-ms': '700' },
    body: '{"any":"thing"}',
  })
  await answer.body?.cancel()
  return seen
}
