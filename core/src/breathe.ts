/** Longest time that work on many rows holds the event loop, in ms: others are to be served meanwhile. */
const HOLD_MS = 10

let turned = performance.now()

/** Called now and then in a long loop: lets the event loop turn if it has not for a while. */
export async function breathe(): Promise<void> {
  if (performance.now() - turned < HOLD_MS) return
  await new Promise((resolve) => setImmediate(resolve))
  turned = performance.now()
}
