import { adapterContract } from '../../core/test/server/adapter-contract.ts'
import { express5Host } from './hosts.ts'

adapterContract(express5Host)
