import { FaultyChain } from './faulty-chain.ts'
import { hopContract } from './hop-contract.ts'

hopContract({
  name: 'cut off from those before it',
  isHeard: false,
  start: () => FaultyChain.start({ isLinked: true }),
  strike: (chain, position) => chain.link(position).cut(),
  undo: (chain, position) => chain.link(position).heal(),
})
