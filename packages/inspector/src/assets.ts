import { readdirSync, readFileSync } from 'node:fs'

/** A file of the page. */
export interface Asset {
  readonly type: string
  readonly body: Buffer
}

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

// the page is always the built one, also where this file is run from its sources
const folder = new URL(import.meta.url.endsWith('.ts') ? '../dist/page/' : './page/', import.meta.url)

/** Whether the page has a file of that name; where its files cannot be read, every name may be one. */
export function isPageFile(name: string): boolean {
  try {
    return pageAssets().has(name)
  } catch {
    return true
  }
}

let read: ReadonlyMap<string, Asset> | undefined

/**
 * The page's files by name, read on first use; nothing else can be asked for.
 * @throws Error if they are not beside this file, as when the server has been bundled into one.
 */
export function pageAssets(): ReadonlyMap<string, Asset> {
  read ??= new Map(
    readdirSync(folder).flatMap((name): [string, Asset][] => {
      const type = types[name.slice(name.lastIndexOf('.') + 1)]
      return type === undefined ? [] : [[name, { type, body: readFileSync(new URL(name, folder)) }]]
    }),
  )
  return read
}
