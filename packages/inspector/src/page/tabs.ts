/** Names of the views, as in the markup: `tab-operations` shows `panel-operations`. */
export type View = 'requests' | 'operations' | 'models' | 'service'

const views: readonly View[] = ['requests', 'operations', 'models', 'service']

/** The tabs: one view at a time, arrows move between them, the address remembers which. */
export class Tabs {
  #view: View = 'requests'
  readonly #changed: () => void

  constructor(changed: () => void) {
    this.#changed = changed
    for (const [index, view] of views.entries()) {
      const tab = tabOf(view)
      tab.addEventListener('click', () => this.show(view))
      tab.addEventListener('keydown', ({ key }) => {
        const step = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0
        const next = views[(index + step + views.length) % views.length]
        if (step === 0 || next === undefined) return
        this.show(next)
        tabOf(next).focus()
      })
    }
    const asked = views.find((view) => location.hash === `#${view}`)
    if (asked !== undefined) this.show(asked)
  }

  get view(): View {
    return this.#view
  }

  show(view: View): void {
    this.#view = view
    for (const each of views) {
      const tab = tabOf(each)
      tab.setAttribute('aria-selected', String(each === view))
      tab.tabIndex = each === view ? 0 : -1
      const panel = document.getElementById(`panel-${each}`)
      if (panel !== null) panel.hidden = each !== view
    }
    history.replaceState(null, '', view === 'requests' ? location.pathname : `#${view}`)
    this.#changed()
  }
}

function tabOf(view: View): HTMLElement {
  const tab = document.getElementById(`tab-${view}`)
  if (tab === null) throw new Error(`the page has no tab ${view}`)
  return tab
}
