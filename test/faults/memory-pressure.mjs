// Preloaded with --import: from the first request on, a small heap is full and its collector busy.
import { subscribe } from 'node:diagnostics_channel'

const kept = Array.from({ length: 20_000 }, () => ({ filler: Array.from({ length: 100 }, Math.random) }))
let isBusy = false

subscribe('http.server.request.start', () => {
  if (isBusy) return
  isBusy = true
  waste()
})

/** Leaves three quarters of the time to others, however slow the machine is. */
function waste() {
  const began = performance.now()
  const garbage = Array.from({ length: 3_000 }, () => ({ filler: Array.from({ length: 16 }).fill(kept) }))
  if (garbage.length > 0) globalThis.gc()
  setTimeout(waste, 3 * (performance.now() - began)).unref()
}
