import { adapterContract } from '../../core/test/server/adapter-contract.ts'
import { fastifyHost } from './hosts.ts'

adapterContract(fastifyHost)
