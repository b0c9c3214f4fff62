// The API reference: a page for every module of every published package, named as a user imports it.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Application, Converter, ReflectionKind } from 'typedoc'

const packages = new URL('../packages/', import.meta.url)

/** By which specifier each entry file is imported. */
const specifiers = new Map(readdirSync(packages).toSorted().flatMap(entriesOf))

function entriesOf(folder) {
  const manifest = JSON.parse(readFileSync(new URL(`${folder}/package.json`, packages), 'utf8'))
  if (manifest.private === true) return []
  return Object.entries(manifest.exports).flatMap(([subpath, { '@timebudget/source': source }]) =>
    source === undefined
      ? []
      : [[fileURLToPath(new URL(`${folder}/${source}`, packages)), manifest.name + subpath.slice(1)]],
  )
}

function nameModules({ converter }) {
  converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
    if (!reflection.kindOf(ReflectionKind.Module)) return
    const [declaration] = context.getSymbolFromReflection(reflection)?.declarations ?? []
    reflection.name = specifiers.get(declaration?.getSourceFile().fileName) ?? reflection.name
  })
}

/**
 * Every exported name has a docstring, and every method of a class. `validation.notDocumented` would ask for one on each
 * property of each structure too, where most names say all there is to say.
 */
function requireDocstrings(application) {
  application.on(Application.EVENT_VALIDATE_PROJECT, (project) => {
    const exported = project
      .getReflectionsByKind(ReflectionKind.SomeModule)
      .flatMap(({ children = [] }) => children)
      .filter((reflection) => !reflection.isReference())
    const methods = exported
      .filter((reflection) => reflection.kindOf(ReflectionKind.Class))
      .flatMap(({ children }) => children)
      .filter((member) => member.kindOf(ReflectionKind.Method | ReflectionKind.Accessor))
      .filter((member) => member.inheritedFrom === undefined)
    for (const reflection of [...exported, ...methods])
      if (!isDocumented(reflection))
        application.logger.validationWarning(`${reflection.getFriendlyFullName()} has no docstring`)
  })
}

function isDocumented(reflection) {
  const { signatures = [], getSignature, setSignature } = reflection
  return [reflection, ...signatures, getSignature, setSignature].some((each) => each?.hasComment() === true)
}

export default {
  name: 'timebudget',
  entryPoints: [...specifiers.keys()],
  tsconfig: fileURLToPath(new URL('tsconfig.json', import.meta.url)),
  plugin: [nameModules, requireDocstrings],
  out: fileURLToPath(new URL('dist/api', import.meta.url)),
  logLevel: 'Warn',
  readme: 'none',
  excludeInternal: true,
  disableSources: true,
  // tsc has checked them, and this TypeScript is an older one
  skipErrorChecking: true,
  // notExported looks only at the package that typedoc runs in
  validation: { notExported: false, invalidLink: true, invalidPath: true, rewrittenLink: true },
  treatValidationWarningsAsErrors: true,
  externalSymbolLinkMappings: { '@opentelemetry/api': { '*': '#' } },
}
