export { governedFetch, type GovernedFetchOptions } from './governed-fetch.ts'
export type { ConnectOptions } from './connector.ts'
export { watchStream, type WatchOptions } from './watch-stream.ts'
export type { StreamSource } from './stream-source.ts'
export { type Profile, type ProfileCall, type ProfileChoice, profiles } from './profiles.ts'
export { openaiChat, type OpenAiChatClient } from './providers/openai-chat.ts'
export { openaiResponses, type OpenAiResponsesClient } from './providers/openai-responses.ts'
export { anthropicMessages, type AnthropicClient } from './providers/anthropic-messages.ts'
export { aiSdk, type AiSdkCall, type AiSdkModel } from './providers/ai-sdk.ts'
export {
  aiSdkMiddleware,
  type AiSdkMiddleware,
  type AiSdkMiddlewareOptions,
  type AiSdkParams,
  type AiSdkStreamCall,
} from './providers/ai-sdk-middleware.ts'
export { langchainChat, type LangChainModel } from './providers/langchain-chat.ts'
export type { RequestOptions, SourceScope } from './providers/source.ts'
export { ladder } from './ladder.ts'
export type { AnswerStream, Ask, Ladder, LadderOptions, Token, ToolPiece } from './ladder.ts'
export { type AskModel, model, type ModelOptions, type ModelScope } from './rungs/model.ts'
export {
  type AnswerCache,
  cached,
  type CachedOptions,
  type SimilarAnswer,
  type StoredAnswer,
} from './rungs/cached.ts'
export { rule, type RuleOptions } from './rungs/rule.ts'
export { job, type JobOptions, type JobQueue } from './rungs/job.ts'
export type { Rung, RungAnswer, RungScope } from './rungs/rung.ts'
export {
  type Answer,
  answerHeaders,
  type AnswerTimings,
  type JobTicket,
  type RungAttempt,
  statusOf,
} from './answer.ts'
export { type LlmAnswered, llmAnswered } from './answer-events.ts'
export type { ContentEvent, ModelEvent, ToolEvent } from './model-events.ts'
export type { Usage } from './usage.ts'
export { type CallSettings, currentCallSettings, withCallSettings } from './call-settings.ts'
export { CostMeter, type CostMeterOptions, type CostRow, type TaskCost } from './cost-meter.ts'
export type { CostBook, Payer } from './cost-book.ts'
export type { Cost, Price, Prices } from './prices.ts'
export type { SpendingLimit } from './spending.ts'
export type { CallTimings, LlmCall } from './call-record.ts'
export { llmCallFinished } from './call-events.ts'
export { Figures, type LlmFigures } from './figures.ts'
