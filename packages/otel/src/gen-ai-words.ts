/** The kind of operation that is asked for at such an address, in the word of the conventions for generative AI. */
export function operationAt(url: string): string {
  if (/\/embeddings?$/.test(url)) return 'embeddings'
  if (/:(stream)?generateContent$/i.test(url)) return 'generate_content'
  return url.endsWith('/completions') && !url.endsWith('/chat/completions') ? 'text_completion' : 'chat'
}

/** Providers that the conventions know by another word than we do. */
const conventionalNames: ReadonlyMap<string, string> = new Map([
  ['azure', 'azure.ai.openai'],
  ['bedrock', 'aws.bedrock'],
  ['google', 'gcp.gen_ai'],
  ['mistral', 'mistral_ai'],
  ['xai', 'x_ai'],
])

/** The provider's name as the conventions have it. */
export function conventional(provider: string): string {
  return conventionalNames.get(provider) ?? provider
}
