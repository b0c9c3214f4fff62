import { adapterContract } from '../../core/test/server/adapter-contract.ts'
import { koa3Host } from './hosts.ts'

adapterContract(koa3Host)
