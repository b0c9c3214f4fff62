import type { ServerResponse } from 'node:http'

/** Headers that are about to leave: those set on the response, and those given to `writeHead`, which win. */
export class ResponseHead {
  readonly #response: ServerResponse
  readonly #arguments: unknown[]

  /** `writeHeadArguments` is changed in place. */
  constructor(response: ServerResponse, writeHeadArguments: unknown[]) {
    this.#response = response
    this.#arguments = writeHeadArguments
  }

  get(name: string): string | undefined {
    return valueIn(this.#given(), name) ?? headerText(this.#response.getHeader(name))
  }

  /** Adds a member to a header that is a list. */
  append(name: string, member: string): void {
    const present = this.get(name)
    this.set(name, present === undefined ? member : `${present}, ${member}`)
  }

  set(name: string, value: string): void {
    const given = this.#given()
    if (given === undefined) this.#response.setHeader(name, value)
    else this.#arguments[this.#arguments.indexOf(given)] = withHeader(given, name, value)
  }

  #given(): object | undefined {
    return this.#arguments.findLast((argument) => typeof argument === 'object' && argument !== null)
  }
}

/** `writeHead` takes an object, a list of names and values in turn, or a list of pairs. */
function valueIn(headers: object | undefined, name: string): string | undefined {
  if (headers === undefined) return undefined
  const flat: readonly unknown[] = Array.isArray(headers) ? headers.flat() : Object.entries(headers).flat()
  const index = flat.findIndex((text, at) => at % 2 === 0 && String(text).toLowerCase() === name)
  return index < 0 ? undefined : headerText(flat[index + 1])
}

function withHeader(headers: object, name: string, value: string): object {
  if (!Array.isArray(headers)) {
    return {
      ...Object.fromEntries(Object.entries(headers).filter(([key]) => key.toLowerCase() !== name)),
      [name]: value,
    }
  }
  const list: readonly unknown[] = headers
  if (list.every((pair) => Array.isArray(pair))) {
    return [...list.filter(([key]) => String(key).toLowerCase() !== name), [name, value]]
  }
  const others = list.filter((_text, at) => String(list[at - (at % 2)]).toLowerCase() !== name)
  return [...others, name, value]
}

function headerText(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
}
