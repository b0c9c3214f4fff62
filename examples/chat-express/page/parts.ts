/** The element of that kind that the page is made to have. */
export function part<T extends Element>(root: ParentNode, selector: string, kind: new () => T): T {
  const found = root.querySelector(selector)
  if (found instanceof kind) return found
  throw new Error(`the page has no ${selector}`)
}
