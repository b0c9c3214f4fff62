import { FaultyChain } from './faulty-chain.ts'
import { hopContract } from './hop-contract.ts'

hopContract({
  name: 'killed',
  isHeard: true,
  start: () => FaultyChain.start(),
  strike: (chain, position) => chain.hop(position).kill(),
  undo: (chain, position) => chain.restart(position),
})
