import { hopContract } from './hop-contract.ts'

hopContract({
  name: 'cut off from those before it',
  isHeard: false,
  isLinked: true,
  strike: (chain, position) => chain.link(position).cut(),
  undo: (chain, position) => chain.link(position).heal(),
})
