import { adapterContract } from './adapter-contract.ts'
import { nodeHttp } from './node-http.ts'

adapterContract(nodeHttp)
