import type { ServerResponse } from 'node:http'

const noArguments: unknown[] = []

/** Headers that are about to leave: those set on the response, and those given to `writeHead`, which win. */
export class ResponseHead {
  readonly #response: ServerResponse
  readonly #arguments: unknown[]

  /** `writeHeadArguments` is changed in place. */
  constructor(response: ServerResponse, writeHeadArguments: unknown[] = noArguments) {
    this.#response = response
    this.#arguments = writeHeadArguments
  }

  get status(): number {
    const [status] = this.#arguments
    return typeof status === 'number' ? status : this.#response.statusCode
  }

  /** `name` in lower case. */
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
    for (let index = this.#arguments.length - 1; index >= 0; index -= 1) {
      const argument = this.#arguments[index]
      if (typeof argument === 'object' && argument !== null) return argument
    }
    return undefined
  }
}

/** `writeHead` takes an object, a list of names and values in turn, or a list of pairs. */
function valueIn(headers: object | undefined, name: string): string | undefined {
  if (headers === undefined) return undefined
  if (Array.isArray(headers)) return valueInList(headers.flat(), name)
  const members = headers as Readonly<Record<string, unknown>>
  // nearly everybody writes them in lower case
  if (Object.hasOwn(members, name)) return headerText(members[name])
  const key = Object.keys(members).find((each) => each.length === name.length && each.toLowerCase() === name)
  return key === undefined ? undefined : headerText(members[key])
}

function valueInList(flat: readonly unknown[], name: string): string | undefined {
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
