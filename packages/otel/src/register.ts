import { constants } from 'node:os'
import { startTelemetry, type Telemetry } from './start-telemetry.ts'

// node --import @timebudget/otel/register app.js: everything else is said by OTEL_* variables

/** The telemetry that has been started; an application that ends itself awaits its `shutdown()` before `process.exit()`. */
export const telemetry: Telemetry = startTelemetry()

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void end(signal))

/** Exports what is left and lets the signal end the process then, as it would have done without us. */
async function end(signal: 'SIGTERM' | 'SIGINT'): Promise<void> {
  // the application ends itself, in its own time
  if (process.listenerCount(signal) > 0) return
  await telemetry.shutdown()
  // the first process of a container does not die of its own signal
  if (process.pid === 1) process.exit(128 + constants.signals[signal])
  process.kill(process.pid, signal)
}
