import { adapterContract } from './adapter-contract.ts'
import { nodeHttp2 } from './node-http.ts'

adapterContract(nodeHttp2)
