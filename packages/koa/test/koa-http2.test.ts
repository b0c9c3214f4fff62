import { adapterContract } from '../../core/test/server/adapter-contract.ts'
import { koa3Http2Host } from './hosts.ts'

adapterContract(koa3Http2Host)
