// Preloaded with --import: fills a small heap and keeps its collector busy.
const kept = []
while (process.memoryUsage().heapUsed < 28_000_000)
  kept.push({ filler: Array.from({ length: 100 }, Math.random) })

setInterval(() => {
  const garbage = Array.from({ length: 10_000 }, () => ({ filler: Array.from({ length: 16 }).fill(kept) }))
  if (garbage.length > 0) globalThis.gc()
}, 40).unref()
