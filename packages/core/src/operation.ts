import { type OperationOptions, type OperationScope, startOperation } from './running-operation.ts'

/**
 * Runs a named piece of work inside what is left of the request. It settles at its own timeout, at the deadline or when
 * the client leaves, even if the work ignores its signal.
 *
 *     const docs = await operation('retrieve', { timeout: '500ms', floor: '50ms' }, ({ signal }) => search(query, { signal }))
 *
 * @throws BudgetTooSmallError without starting the work if less than the floor is left; OperationTimeoutError after its
 *   own timeout; the deadline's reason once that has ended; TypeError if an option does not exist or is unreadable; what
 *   the work throws.
 */
export function operation<T>(
  name: string,
  options: OperationOptions,
  work: (scope: OperationScope) => Promise<T> | T,
): Promise<T> {
  try {
    return startOperation(name, options).run(work)
  } catch (error) {
    return Promise.reject(error)
  }
}
