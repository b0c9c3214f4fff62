import { startTelemetry } from './start-telemetry.ts'

// node --import @timebudget/otel/register app.js: everything else is said by OTEL_* variables
startTelemetry()
