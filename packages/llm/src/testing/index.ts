export {
  type Closing,
  localProvider,
  type LocalProvider,
  type LocalProviderOptions,
  type ProviderApi,
  type ProviderRequest,
} from './local-provider.ts'
export {
  cutAfter,
  type Ending,
  errorAnswer,
  headersThenSilence,
  keepAliveForEver,
  neverAnswers,
  type ProviderFailure,
  type Script,
  steadyTokens,
  type Step,
  type TokenCounts,
  tokensThenSilence,
} from './script.ts'
export { blackHole, type BlackHole } from './black-hole.ts'
