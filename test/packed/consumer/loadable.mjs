// Imports each of its arguments, and prints why those that cannot be imported cannot.
const failures = {}
for (const specifier of process.argv.slice(2)) {
  try {
    await import(specifier)
  } catch (error) {
    failures[specifier] = error.message
  }
}
console.log(JSON.stringify(failures))
