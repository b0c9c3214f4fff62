import { createRequire, register } from 'node:module'
import { pathToFileURL } from 'node:url'
import { findInstalled } from './installed.ts'

interface SyncHooks {
  supportsSyncHooks(): boolean
  register(): void
}

/**
 * Lets instrumentations see what ES modules import; without it an application of ES modules has no spans of node:http and
 * reads no trace context. Only of what is imported afterwards.
 */
export function registerLoaderHook(): void {
  const instrumentation = findInstalled('@opentelemetry/instrumentation', instrumentations())
  if (instrumentation === undefined) return
  const hooks = syncHooks(instrumentation)
  if (hooks?.supportsSyncHooks() === true) hooks.register()
  else register('@opentelemetry/instrumentation/hook.mjs', pathToFileURL(instrumentation))
}

/** Each instrumentation may have its own copy of the package that hooks imports: the SDK's is the one that counts. */
function instrumentations(): readonly string[] {
  const known = ['@opentelemetry/sdk-node', '@opentelemetry/instrumentation-http']
  return known.flatMap((name) => findInstalled(name) ?? [])
}

/** In the application's own thread, on Node versions that can; the other way is deprecated from Node 26 on. */
function syncHooks(instrumentation: string): SyncHooks | undefined {
  const file = findInstalled('import-in-the-middle/register-hooks.mjs', [instrumentation])
  if (file === undefined) return undefined
  const hooks: unknown = createRequire(file)(file)
  return isSyncHooks(hooks) ? hooks : undefined
}

function isSyncHooks(hooks: unknown): hooks is SyncHooks {
  return typeof hooks === 'object' && hooks !== null && 'supportsSyncHooks' in hooks && 'register' in hooks
}
