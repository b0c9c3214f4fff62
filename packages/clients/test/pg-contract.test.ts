import { withDeadline } from '@timebudget/clients/pg'
import { everyClientContract } from './every-client/contract.ts'
import { pgContractBench } from './every-client/pg-bench.ts'

everyClientContract({
  name: 'a Pool of pg',
  operation: 'pg',
  failsWith: "the library's error",
  isAlone: true,
  bench: (behaviour, options, context) =>
    pgContractBench(behaviour, (pool) => withDeadline(pool, options), context),
})
