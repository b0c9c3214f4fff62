import { hopContract } from './hop-contract.ts'

hopContract({
  name: 'frozen',
  isHeard: false,
  isLinked: false,
  strike: (chain, position) => chain.hop(position).freeze(),
  undo: (chain, position) => chain.hop(position).thaw(),
})
