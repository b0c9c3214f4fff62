import { FaultyChain } from './faulty-chain.ts'
import { hopContract } from './hop-contract.ts'

hopContract({
  name: 'frozen',
  isHeard: false,
  start: () => FaultyChain.start(),
  strike: (chain, position) => chain.hop(position).freeze(),
  undo: (chain, position) => chain.hop(position).thaw(),
})
