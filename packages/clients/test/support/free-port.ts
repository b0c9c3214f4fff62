export { freePort } from '../../../../test/support/free-port.ts'
