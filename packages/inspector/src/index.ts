export { inspector, type Inspector } from './inspector.ts'
export type { Guard, InspectorOptions } from './options.ts'
export type { ContextLike, FastifyLike } from './hosts.ts'
