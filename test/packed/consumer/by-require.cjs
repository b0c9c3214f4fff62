// A program of CommonJS; its arguments are what it requires.
const assert = require('node:assert/strict')
const { exercise } = require('./exercise.cjs')

/** Express and Koa are CommonJS themselves: `require` gives what `import` calls their default. */
function load(specifier) {
  const loaded = require(specifier)
  return typeof loaded === 'function' ? { default: loaded, ...loaded } : loaded
}

/** Two instances would not know each other's deadlines. */
async function isTheSameByImport() {
  const required = require('@timebudget/core')
  const imported = await import('@timebudget/core')
  assert.equal(required.Deadline, imported.Deadline)
  const deadline = required.Deadline.after('5s')
  assert.equal(required.runWithDeadline(deadline, imported.currentDeadline), deadline)
  deadline.settle()
}

void exercise(load, process.argv.slice(2)).then(isTheSameByImport)
