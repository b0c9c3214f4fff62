export { dyingWithUs } from '../../../../test/support/dying-with-us.ts'
