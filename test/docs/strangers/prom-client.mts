/** As much of prom-client's as the guides use. */
export declare class Gauge {
  constructor(options: {
    readonly name: string
    readonly help: string
    readonly labelNames: readonly string[]
    collect?(this: Gauge): void
  })
  set(labels: Readonly<Record<string, string | undefined>>, value: number): void
}
