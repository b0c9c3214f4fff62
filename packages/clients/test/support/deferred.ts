/** A promise and what settles it, as `Promise.withResolvers` makes them from Node 22 on. */
export function deferred<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let settle: (value: T) => void = () => undefined
  const promise = new Promise<T>((resolve) => (settle = resolve))
  return { promise, resolve: settle }
}
