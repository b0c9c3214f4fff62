import { createRequire } from 'node:module'
import { join } from 'node:path'

/** Where a package that the application has installed may be found from: the application, where it was started, and here. */
function places(): readonly string[] {
  const application = process.argv[1]
  const elsewhere = [join(process.cwd(), 'package.json'), import.meta.url]
  return application === undefined ? elsewhere : [application, ...elsewhere]
}

/** The file of a package that the application has installed, or that a file of another one has. */
export function findInstalled(name: string, from: readonly string[] = places()): string | undefined {
  for (const place of from) {
    try {
      return createRequire(place).resolve(name)
    } catch {
      // not from here
    }
  }
  return undefined
}

/**
 * What a package that the application has installed exports. At once, and not by `import()`: instrumentations must be in
 * place before the application's next import.
 */
export function requireInstalled(name: string): Readonly<Record<string, unknown>> | undefined {
  const file = findInstalled(name)
  return file === undefined ? undefined : createRequire(file)(file)
}
