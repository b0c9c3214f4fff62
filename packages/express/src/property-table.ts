import { ServerResponse } from 'node:http'

/**
 * Express sets the prototypes of every request and response. Up to Node 22 such an object gets a hidden class of its own
 * with each property that is added later, at 5 us each, and no code that reads it can be compiled for it.
 */
const isDearAfterPrototype = Number(process.versions.node.split('.')[0]) < 24

/**
 * Lets V8 keep the two as tables, to which adding costs nothing: it does so once a property is taken out. The rest of
 * Express gains by it too: on Node 20 a hello world with a deadline takes less CPU than one without; see bench/server.
 */
export function keepAsTables(request: object, response: object): void {
  if (!isDearAfterPrototype || Object.getPrototypeOf(response) === ServerResponse.prototype) return
  putBack(request, 'method')
  putBack(response, 'sendDate')
}

function putBack(target: object, name: string): void {
  const property = Object.getOwnPropertyDescriptor(target, name)
  if (property === undefined || !('value' in property)) return
  Reflect.deleteProperty(target, name)
  Reflect.set(target, name, property.value)
}
