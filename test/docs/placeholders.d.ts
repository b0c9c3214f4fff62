// What the guides take for the reader's own: declared, so that the printed code needs no scaffolding.
export {}

declare global {
  const url: string
}
