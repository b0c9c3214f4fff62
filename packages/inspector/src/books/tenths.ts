/** Milliseconds to a tenth; `null` for what JSON has no number for. */
export function tenths(milliseconds: number | undefined): number | null {
  return milliseconds !== undefined && Number.isFinite(milliseconds) ? roundToTenths(milliseconds) : null
}

/** For what is always a number; 0 if it is none. */
export function roundToTenths(milliseconds: number): number {
  const rounded = Math.round(milliseconds * 10) / 10
  return Number.isFinite(rounded) ? rounded : 0
}
