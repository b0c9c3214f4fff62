import type { Call } from './client.ts'

/** A multipart form: a short value is a field, a long one a file. */
export function formOf(
  values: Readonly<Record<string, string>>,
): Required<Pick<Call, 'method' | 'headers' | 'body'>> {
  const boundary = '----boundary'
  const parts = Object.entries(values).map(([name, value]) => {
    const isFile = value.length > 100
    const disposition = `content-disposition: form-data; name="${name}"${isFile ? '; filename="a.txt"' : ''}`
    return `--${boundary}\r\n${disposition}${isFile ? '\r\ncontent-type: text/plain' : ''}\r\n\r\n${value}\r\n`
  })
  return {
    method: 'POST',
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: `${parts.join('')}--${boundary}--\r\n`,
  }
}
