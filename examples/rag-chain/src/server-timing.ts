/** One operation as a Server-Timing header tells it; milliseconds since the request's arrival. */
export interface TimingEntry {
  /** Names from the outermost operation to this one: `orchestrator.retrieve`. */
  readonly path: string
  readonly start: number
  readonly duration: number
  readonly outcome: string
}

const entry = /([^\s;,="]+)((?:\s*;\s*[\w-]+\s*=\s*(?:"[^"]*"|[^\s;,"]*))*)/g
const parameter = /;\s*([\w-]+)\s*=\s*(?:"([^"]*)"|([^\s;,"]*))/g

/** Reads a Server-Timing header; entries without a start and a duration are left out. */
export function parseServerTiming(header: string): TimingEntry[] {
  return [...header.matchAll(entry)].flatMap(([, path = '', parameters = '']) => {
    const values = new Map(
      [...parameters.matchAll(parameter)].map(([, name, quoted, bare]) => [name, quoted ?? bare]),
    )
    const start = Number.parseFloat(values.get('start') ?? '')
    const duration = Number.parseFloat(values.get('dur') ?? '')
    if (Number.isNaN(start) || Number.isNaN(duration)) return []
    return [{ path, start, duration, outcome: values.get('desc') ?? '' }]
  })
}
