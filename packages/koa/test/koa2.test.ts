import { adapterContract } from '../../core/test/server/adapter-contract.ts'
import { koa2Host } from './hosts.ts'

adapterContract(koa2Host)
