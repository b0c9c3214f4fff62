import { hopContract } from './hop-contract.ts'

hopContract({
  name: 'killed',
  isHeard: true,
  isLinked: false,
  strike: (chain, position) => chain.hop(position).kill(),
  undo: (chain, position) => chain.restart(position),
})
