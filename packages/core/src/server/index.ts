export { type RequestListener, withDeadline } from './listener.ts'
export {
  type ExceededAnswer,
  type ResolvedServerOptions,
  resolveServerOptions,
  type ServerOptions,
  type Trust,
} from './options.ts'
export { deadlineOf, openRequest, openRequestOf, type OpenOptions, type OpenRequest } from './open-request.ts'
export { isBrokenConnection } from './broken-connection.ts'
export { type Problem, problemOf } from './answer.ts'
export {
  type ArrivingCall,
  type CallServerOptions,
  OpenCall,
  resolveCallOptions,
  type ResolvedCallOptions,
} from './open-call.ts'
