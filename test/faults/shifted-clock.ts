import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'vitest'
import { requireOrSkip } from '../support/requirements.ts'

const library = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
  .map((folder) => `/usr/lib/${folder}/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path))

/** A wall clock that one process sees and a test sets; that process's monotonic clock goes on as it is. */
export class ShiftedClock implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'timebudget-clock-'))
  readonly #library: string

  /** `shift` is `+1h`, `-90s`, `+0` and the like. */
  constructor(context: TestContext, shift: string) {
    this.#library = requireOrSkip(context, library, 'apt-get install faketime')
    this.set(shift)
  }

  set(shift: string): void {
    writeFileSync(`${this.#file}.new`, `${shift}\n`)
    renameSync(`${this.#file}.new`, this.#file)
  }

  get environment(): Readonly<Record<string, string>> {
    return {
      LD_PRELOAD: this.#library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }
  }

  get #file(): string {
    return join(this.#folder, 'shift')
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
