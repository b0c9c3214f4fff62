const themes = ['system', 'light', 'dark'] as const
const names = { system: 'Auto', light: 'Light', dark: 'Dark' } as const
const key = 'timebudget-theme'

/** Light, dark, or as the system has it; remembered by the browser where it remembers anything. */
export function startTheme(button: HTMLButtonElement): void {
  let theme = themes.find((each) => each === remembered()) ?? 'system'
  const apply = (): void => {
    document.documentElement.dataset['theme'] = theme
    button.textContent = names[theme]
  }
  button.addEventListener('click', () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'system'
    try {
      localStorage.setItem(key, theme)
    } catch {
      // a browser that keeps nothing: it is asked again next time
    }
    apply()
  })
  apply()
}

function remembered(): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}
