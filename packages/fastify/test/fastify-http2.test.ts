import { adapterContract } from '../../core/test/server/adapter-contract.ts'
import { fastifyHttp2Host } from './hosts.ts'

adapterContract(fastifyHttp2Host)
