import { fetch } from '@timebudget/clients/fetch'
import { withDeadline } from './next-deadline.ts'

export const GET = withDeadline(search, { default: '3s', max: '60s' })

async function search(request: Request): Promise<Response> {
  const words = new URL(request.url).searchParams.get('q') ?? ''
  const answer = await fetch(`${process.env['INDEX_URL']}/search?q=${encodeURIComponent(words)}`)
  return Response.json(await answer.json())
}
