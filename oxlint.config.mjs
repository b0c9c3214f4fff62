/** What each package may import from its siblings: the dependency direction, never the other way. */
const mayImport = {
  core: [],
  express: ['core'],
  koa: ['core'],
  fastify: ['core'],
  clients: ['core'],
  resilience: ['core'],
  sse: ['core'],
  otel: ['core'],
  inspector: ['core'],
  llm: ['core', 'clients', 'resilience', 'sse'],
  cli: ['core', 'clients', 'resilience', 'sse', 'otel', 'inspector', 'llm', 'express', 'koa', 'fastify'],
}

function siblingsOf(name) {
  const forbidden = Object.keys(mayImport).filter(
    (other) => other !== name && !mayImport[name].includes(other),
  )
  return {
    regex: `^@timebudget/(${forbidden.join('|')})(/|$)`,
    message: `${name} may import of @timebudget only: ${mayImport[name].join(', ') || 'nothing'}.`,
  }
}

const published = {
  regex: '^@timebudget-|^\\..*/(examples|bench)/',
  message: 'What is published knows no example and no benchmark.',
}

const acrossFolders = {
  regex: '^(\\.\\./)+[a-z-]+/(src|dist|test)/|/dist/',
  message: 'Import another package by its name, and only what it exports.',
}

const intoTests = { regex: '^\\..*/test/', message: 'Sources do not import tests.' }

const strangersToCore = {
  group: ['*', '!node:*', '!ms', '!./**', '!../**'],
  message: 'core has one dependency, ms, and knows no framework.',
}

const timers = ['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'performance']

const useTheClock = 'Take time from a Clock: only clock.ts touches timers and clocks.'

const unsafeSignals = ['any', 'timeout'].map((property) => ({
  object: 'AbortSignal',
  property,
  message: 'It loses aborts after garbage collection on Node 20: derive a Deadline.',
}))

const clocksByOtherNames = [
  { object: 'Date', property: 'now', message: useTheClock },
  ...timers.map((property) => ({ object: 'globalThis', property, message: useTheClock })),
]

const timerModules = ['node:timers', 'node:timers/promises', 'node:perf_hooks'].map((name) => ({
  name,
  message: useTheClock,
}))

const directionPerPackage = Object.keys(mayImport).flatMap((name) => [
  {
    files: [`packages/${name}/src/**`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          paths: name === 'core' ? timerModules : [],
          patterns: [
            ...(name === 'core' ? [strangersToCore] : []),
            siblingsOf(name),
            published,
            acrossFolders,
            intoTests,
          ],
        },
      ],
    },
  },
  {
    files: [`packages/${name}/test/**`],
    rules: { 'no-restricted-imports': ['error', { patterns: [siblingsOf(name), published] }] },
  },
])

export default {
  plugins: ['eslint', 'typescript', 'unicorn', 'oxc', 'import', 'promise', 'node', 'vitest'],
  categories: { correctness: 'error' },
  ignorePatterns: ['**/dist/**', '**/node_modules/**', '**/coverage/**'],
  rules: {
    eqeqeq: 'error',
    'no-console': 'error',
    'no-fallthrough': 'error',
    'no-self-compare': 'error',
    'no-useless-return': 'error',
    'no-var': 'error',
    'object-shorthand': 'error',
    'prefer-const': 'error',
    'prefer-template': 'error',
    'import/no-cycle': ['error', { ignoreTypes: true }],
    'import/no-default-export': 'error',
    'import/no-self-import': 'error',
    'node/handle-callback-err': 'error',
    'promise/no-multiple-resolved': 'error',
    'typescript/consistent-type-exports': 'error',
    'typescript/consistent-type-imports': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-import-type-side-effects': 'error',
    'typescript/no-misused-promises': ['error', { checksVoidReturn: false }],
    'typescript/no-unnecessary-type-assertion': 'error',
    'typescript/only-throw-error': 'error',
    'typescript/prefer-readonly': 'error',
    'typescript/switch-exhaustiveness-check': [
      'error',
      { considerDefaultExhaustiveForUnions: true, requireDefaultForNonUnion: false },
    ],
    'unicorn/filename-case': ['error', { case: 'kebabCase' }],
    'unicorn/prefer-node-protocol': 'error',
    'unicorn/throw-new-error': 'error',
    // Adapters put wrappers around Node's own methods and call the originals with `.call`.
    'typescript/unbound-method': 'off',
    // A set of listeners is copied before it is walked, because listeners take themselves out of it.
    'unicorn/no-useless-spread': 'off',
    // A contract test builds its tests in a function and asserts in helpers.
    'vitest/expect-expect': 'off',
    'vitest/no-conditional-expect': 'off',
    'vitest/no-conditional-tests': 'off',
    'vitest/no-standalone-expect': 'off',
    'vitest/valid-title': 'off',
    'vitest/require-to-throw-message': 'off',
  },
  overrides: [
    {
      files: ['packages/*/src/**'],
      rules: {
        'max-lines': ['error', { max: 350, skipBlankLines: true, skipComments: true }],
        'no-restricted-properties': ['error', ...unsafeSignals],
        'typescript/no-non-null-assertion': 'error',
      },
    },
    {
      files: ['packages/core/src/**'],
      rules: {
        'no-restricted-globals': ['error', ...timers.map((name) => ({ name, message: useTheClock }))],
        'no-restricted-properties': ['error', ...unsafeSignals, ...clocksByOtherNames],
      },
    },
    // The slow upstream of core/testing is slow in real time.
    {
      files: ['packages/core/src/clock.ts', 'packages/core/src/testing/**'],
      rules: { 'no-restricted-globals': 'off', 'no-restricted-properties': ['error', ...unsafeSignals] },
    },
    ...directionPerPackage,
    // Fastify loads a plugin by its default export, tools their configuration.
    {
      files: ['packages/fastify/src/index.ts', '*.config.{ts,mjs}'],
      rules: { 'import/no-default-export': 'off' },
    },
    // `catch` of a Nest filter is no promise's.
    { files: ['examples/recipes/src/nest-*'], rules: { 'promise/valid-params': 'off' } },
    {
      files: ['test/support/counted-run/**'],
      rules: { 'vitest/no-disabled-tests': 'off', 'vitest/warn-todo': 'off' },
    },
    {
      files: ['examples/**', 'bench/**', 'scripts/**', 'test/**', 'packages/*/test/**'],
      rules: { 'no-console': 'off' },
    },
  ],
}
