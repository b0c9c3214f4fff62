// Runs in a process of its own on the Node that the test names.
import { heardAfterCollection } from './collected-request.ts'

const { gc } = globalThis
if (gc === undefined) throw new Error('needs --expose-gc')
console.log(await heardAfterCollection(() => gc()))
process.exit(0)
