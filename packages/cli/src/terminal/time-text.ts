/** Milliseconds as people say them, in at most seven characters: `0.4 ms`, `812 ms`, `1.24 s`, `12.3 s`, `2.5 min`, `3.1 h`. */
export function timeText(milliseconds: number): string {
  const ms = Math.max(0, milliseconds)
  if (ms < 9.95) return `${trimmed(ms, 1)} ms`
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 9_995) return `${trimmed(ms / 1000, 2)} s`
  if (ms < 99_950) return `${trimmed(ms / 1000, 1)} s`
  if (ms < 5_970_000) return `${trimmed(ms / 60_000, 1)} min`
  return `${trimmed(ms / 3_600_000, 1)} h`
}

function trimmed(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)))
}
