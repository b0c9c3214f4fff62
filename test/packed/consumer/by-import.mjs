// A program of ES modules; its arguments are what it imports.
import { exercise } from './exercise.cjs'

await exercise((specifier) => import(specifier), process.argv.slice(2))
