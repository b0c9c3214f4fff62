import { vi } from 'vitest'

/** Lets a program that is imported listen on a free port and call `indexUrl`; returns what it says of faults. */
export function prepareEnvironment(indexUrl: string): () => string {
  vi.stubEnv('INDEX_URL', indexUrl)
  vi.stubEnv('PORT', '0')
  let said = ''
  const listen = (text: unknown): boolean => {
    said += String(text)
    return true
  }
  vi.spyOn(process.stderr, 'write').mockImplementation(listen)
  vi.spyOn(console, 'error').mockImplementation(listen)
  vi.spyOn(process.stdout, 'write').mockImplementation(() => true)
  return () => said
}
