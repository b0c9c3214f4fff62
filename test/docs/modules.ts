import { readFileSync } from 'node:fs'
import { guides } from './documents.ts'
import { exampleShownBy } from './embedded.ts'
import type { CodeBlock } from './markdown.ts'

/** A module that is made of a block of code, so that the compiler can judge it. */
export interface BlockModule {
  /** Its file's name. */
  readonly name: string
  readonly text: string
  /** `docs/llm.md:12` for a line of the module, from 1; `undefined` for what is not of this block. */
  placeOf(line: number): string | undefined
}

interface Import {
  readonly specifiers: readonly string[]
  readonly from: string
}

const placeholders = Array.from(
  readFileSync(new URL('placeholders.mts', import.meta.url), 'utf8').matchAll(
    /^export (?:declare )?(const|function|class|interface|type) (\w+)/gm,
  ),
  ([, kind = '', name = '']) => (kind === 'interface' || kind === 'type' ? `type ${name}` : name),
)

/**
 * Every block of TypeScript and JavaScript in the guides as a module. A block can use what the blocks above it in its
 * section import and declare, and what `placeholders.mts` has: so that the printed code needs no scaffolding.
 */
export function blockModules(): BlockModule[] {
  return guides.flatMap(({ path, blocks }) =>
    blocks.flatMap((block, index) => {
      const name = `${path.replaceAll('/', '_')}.${block.line}`
      if (block.language === 'js' || block.language === 'mjs')
        return [javascriptModule(`${name}.mjs`, { path, block })]
      // an example is compiled where it is
      if (block.language !== 'ts' || exampleShownBy(block.code) !== undefined) return []
      const before = blocks
        .slice(0, index)
        .filter((other) => other.language === 'ts' && exampleShownBy(other.code) === undefined)
        .filter((other) => other.section === block.section)
      return [typescriptModule(`${name}.mts`, { path, block, before })]
    }),
  )
}

function javascriptModule(
  name: string,
  { path, block }: { readonly path: string; readonly block: CodeBlock },
): BlockModule {
  return { name, text: block.code, placeOf: (line) => `${path}:${block.line + line - 1}` }
}

function typescriptModule(
  name: string,
  {
    path,
    block,
    before,
  }: { readonly path: string; readonly block: CodeBlock; readonly before: readonly CodeBlock[] },
): BlockModule {
  const own = partsOf(block.code)
  const earlier = before.map(({ code }) => partsOf(code))
  const taken = new Set(own.imports.flatMap(({ specifiers }) => specifiers.map(localNameOf)))
  const given = {
    specifiers: placeholders.filter((each) => !declares(own.body, localNameOf(each))),
    from: '../../placeholders.mts',
  }
  const handed = [...earlier.toReversed().flatMap(({ imports }) => imports), given].flatMap((each) =>
    without(taken, each),
  )
  // what exports must stand at the top of its module, and alone
  const exports = /^export /m.test(own.body)
  const opening = exports
    ? []
    : ['export async function block(): Promise<void> {', ...earlier.flatMap(({ body }) => ['{', body])]
  const head = [...handed, ...opening, '{'].slice(0, exports ? handed.length : undefined).join('\n')
  const closing = exports ? '' : '}'.repeat(earlier.length + 2)
  const importLines = own.importText.split('\n').length
  const bodyFrom = importLines + (head === '' ? 0 : head.split('\n').length)
  return {
    name,
    text: [own.importText, ...(head === '' ? [] : [head]), own.body, closing, 'export {}'].join('\n'),
    placeOf(line) {
      const offset = line <= importLines ? line - 1 : line - bodyFrom - 1
      if (line > importLines && line <= bodyFrom) return undefined
      return `${path}:${block.line + offset}`
    },
  }
}

/** The imports, with the rest blanked out, and the rest with the imports blanked out: lines stay where they are. */
function partsOf(code: string): {
  readonly imports: readonly Import[]
  readonly importText: string
  readonly body: string
} {
  const statement = /^import [^'"]*?(?:from )?'([^']+)'.*$/gm
  const imports = Array.from(code.matchAll(statement), ([text, from = '']) => importOf(text, from))
  const last = code.split('\n').findLastIndex((line) => /^import |^\} from '/.test(line))
  const lines = code.split('\n')
  return {
    imports,
    importText: lines.slice(0, last + 1).join('\n'),
    body: [...lines.slice(0, last + 1).map(() => ''), ...lines.slice(last + 1)].join('\n'),
  }
}

function importOf(statement: string, from: string): Import {
  const clause = /^import (?:type )?([^'"]*?) from/s.exec(statement)?.[1] ?? ''
  const named = /\{([^}]*)\}/.exec(clause)?.[1] ?? ''
  const whole = clause
    .replace(/\{[^}]*\}/, '')
    .replaceAll(',', ' ')
    .trim()
  const specifiers = named
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
  return { from, specifiers: whole === '' ? specifiers : [`default ${whole}`, ...specifiers] }
}

/** The imports of an earlier block whose names are still free; they are taken then. */
function without(taken: Set<string>, { specifiers, from }: Import): string[] {
  return specifiers.flatMap((specifier) => {
    const local = localNameOf(specifier)
    if (taken.has(local)) return []
    taken.add(local)
    if (specifier.startsWith('default * as ')) return [`import * as ${local} from '${from}'`]
    if (specifier.startsWith('default ')) return [`import ${local} from '${from}'`]
    return [`import { ${specifier} } from '${from}'`]
  })
}

/** Whether a block that stands at the top of its module declares the name. */
function declares(body: string, name: string): boolean {
  return (
    new RegExp(`^(export )?(async )?(const|let|function|class|using) ${name}\\b`, 'm').test(body) &&
    /^export /m.test(body)
  )
}

function localNameOf(specifier: string): string {
  return specifier.split(/\s+/).at(-1) ?? specifier
}
