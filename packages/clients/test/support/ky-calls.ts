import type { KyInstance } from 'ky'
import type { Answer, Call, Caller } from '../client-contract.ts'

/** ky as the contract calls clients, without its retries and its errors for what was answered. */
export function kyCaller(ky: KyInstance): Caller {
  return async function callByKy(url: string, call: Call = {}): Promise<Answer> {
    const { method = 'GET', headers = {}, body, signal } = call
    const response = await ky(url, {
      method,
      headers: { ...headers },
      retry: 0,
      throwHttpErrors: false,
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
    })
    return {
      status: response.status,
      header: (name) => response.headers.get(name) ?? undefined,
      text: () => response.text(),
    }
  }
}
