/** `0.4 ms`, `412 ms`, `3.25 s`, `2 min 5 s`; `–` for what is not there. */
export function duration(milliseconds: number | null): string {
  if (milliseconds === null) return '–'
  if (milliseconds < 0) return `−${duration(-milliseconds)}`
  if (milliseconds < 9.95) return `${trim(milliseconds, 1)} ms`
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`
  if (milliseconds < 59_950) return `${trim(milliseconds / 1_000, milliseconds < 9_995 ? 2 : 1)} s`
  const seconds = Math.round(milliseconds / 1_000)
  if (seconds < 3_600) return twoUnits(seconds, ['min', 's'])
  return twoUnits(Math.floor(seconds / 60), ['h', 'min'])
}

/** What is granted or budgeted: without a number it is unbounded. */
export function limit(milliseconds: number | null): string {
  return milliseconds === null ? 'no limit' : duration(milliseconds)
}

/** `2.4 %` of 0 to 1; `–` where nothing was counted. */
export function percent(share: number | null): string {
  if (share === null) return '–'
  const hundredths = share * 100
  if (hundredths > 0 && hundredths < 0.1) return '< 0.1 %'
  return `${trim(hundredths, hundredths < 10 ? 1 : 0)} %`
}

/** `12,345`. */
export function count(value: number): string {
  return value.toLocaleString('en')
}

/** Four figures that matter: `USD 0.00213`. */
export function money(amount: number | null, currency: string): string {
  if (amount === null) return '–'
  const digits = amount === 0 || amount >= 1 ? 2 : Math.min(8, 2 - Math.floor(Math.log10(amount)))
  return `${currency} ${amount.toFixed(digits)}`
}

function trim(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)))
}

function twoUnits(lesser: number, [greater, less]: readonly [string, string]): string {
  const rest = lesser % 60
  return `${Math.floor(lesser / 60)} ${greater}${rest === 0 ? '' : ` ${rest} ${less}`}`
}
