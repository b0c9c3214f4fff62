import { adapterContract } from '../../core/test/server/adapter-contract.ts'
import { express4Host } from './hosts.ts'

adapterContract(express4Host)
