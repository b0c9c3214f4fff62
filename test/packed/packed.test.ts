import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeMatrix } from '../support/node-matrix.ts'
import { requireOrSkip } from '../support/requirements.ts'
import { installPacked, type Project } from './project.ts'

// frameworks are peers that must be there, all else is the user's choice
const frameworks = ['express', 'koa', 'fastify', '@opentelemetry/api']
const types = ['@types/node', '@types/express', '@types/koa']
const imported = ['@grpc/grpc-js', '@connectrpc/connect', '@bufbuild/protobuf', 'resumable-stream']
const typed = ['axios', 'got', 'ky', 'undici']

let project: Project | undefined
let withoutPeers: unknown

beforeAll(async () => {
  project = await installPacked([...frameworks, ...types])
  if (project === undefined) return
  const { stdout } = await project.run(process.execPath, ['loadable.mjs', ...project.specifiers])
  withoutPeers = JSON.parse(stdout)
  await project.install([...imported, ...typed])
}, 300_000)

afterAll(() => project?.remove())

type Skippable = Parameters<typeof requireOrSkip>[0]

function installed(context: Skippable): Project {
  return requireOrSkip(context, project, 'no npm registry can be reached')
}

test('core has one dependency', (context) => {
  expect(Object.keys(installed(context).manifestOf('@timebudget/core').dependencies ?? {})).toEqual(['ms'])
})

test('without optional peers all modules load but those named after one, which say what they lack', (context) => {
  installed(context)
  expect(withoutPeers).toEqual({
    '@timebudget/clients/grpc': expect.stringContaining("'@grpc/grpc-js'"),
    '@timebudget/clients/connect': expect.stringContaining("'@connectrpc/connect'"),
    '@timebudget/sse/redis': expect.stringContaining("'resumable-stream'"),
  })
})

test('telemetry says which SDK to install', async (context) => {
  const start = "import('@timebudget/otel').then(({ startTelemetry }) => startTelemetry())"
  const enabled = `process.env.OTEL_SDK_DISABLED = ''; ${start}`
  const { code, stderr } = await installed(context).run(process.execPath, ['-e', enabled])
  expect(code).toBe(1)
  expect(stderr).toContain('npm install @opentelemetry/sdk-node')
})

describe.each(nodeMatrix())('Node $version', ({ path }) => {
  test.for([
    { way: 'by import', program: 'by-import.mjs' },
    { way: 'by require, without a flag, as the same instance', program: 'by-require.cjs' },
  ])(
    'every module loads and every package does its work $way',
    { timeout: 60_000 },
    async ({ program }, context) => {
      const node = requireOrSkip(context, path, 'node scripts/install-node-matrix.mjs')
      const { specifiers, run } = installed(context)
      const { code, stdout, stderr } = await run(node, [program, ...specifiers])
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      const packages = specifiers.map((specifier) => specifier.split('/', 2).join('/'))
      const exercised = JSON.parse(stdout) as string[]
      expect(packages.filter((name) => !exercised.includes(name))).toEqual([])
    },
  )
})

const compilers = [
  { compiler: 'TypeScript 7, which checks declarations too', folder: '../../node_modules', flags: [] },
  // three times as slow, and most users do not check declarations
  { compiler: 'TypeScript 6', folder: '../../docs/node_modules', flags: ['--skipLibCheck'] },
]
const resolutions = [
  { moduleResolution: 'bundler', module: 'esnext', files: ['typed.ts'] },
  { moduleResolution: 'node16', module: 'node16', files: ['typed.mts'] },
  // the only one that lets a CommonJS file require ES modules
  { moduleResolution: 'nodenext', module: 'nodenext', files: ['typed.mts', 'typed.cts'] },
]

describe.each(compilers)('$compiler', ({ folder, flags }) => {
  test.for(resolutions)(
    'every module has its types under moduleResolution $moduleResolution',
    { timeout: 120_000 },
    async ({ moduleResolution, module, files }, context) => {
      const { folder: home, run } = installed(context)
      for (const file of files.filter((each) => each !== 'typed.mts'))
        copyFileSync(join(home, 'typed.mts'), join(home, file))
      const tsc = fileURLToPath(new URL(`${folder}/typescript/lib/tsc.js`, import.meta.url))
      const options = [
        '--strict',
        '--noEmit',
        '--pretty',
        'false',
        '--types',
        'node',
        '--target',
        'es2022',
        ...flags,
      ]
      const libraries = ['--lib', 'es2023,esnext.disposable']
      const modules = ['--module', module, '--moduleResolution', moduleResolution]
      const { stdout, stderr } = await run(process.execPath, [
        tsc,
        ...options,
        ...libraries,
        ...modules,
        ...files,
      ])
      expect(stderr).toBe('')
      expect(stdout.split('\n').filter(isOurs)).toEqual([])
    },
  )
})

/** Declarations of others have mistakes of their own. */
function isOurs(line: string): boolean {
  return line !== '' && !/^(\s|node_modules\/(?!@timebudget\/))/.test(line)
}
