/** What ends a server that has no other reason to end: signals, and the death of the process that started it. */

/** How often the parent is looked for, in ms. A pipe says nothing when a forked child of the parent holds it open. */
const PARENT_POLL_MS = 1000

export interface Lifetime {
  /** The pid that must stay our parent; default: whoever is at the start. */
  parentPid?: number | undefined
  /** Called with the first reason to end. */
  end: (reason: string) => void
  /** Called when a second signal says not to wait: end at once, with this status. */
  abandon: (status: number) => void
}

const SIGNALS = { SIGTERM: 15, SIGINT: 2 } as const

/** Watch for reasons to end, until the function given back is called. */
export function watchLifetime({ parentPid = process.ppid, end, abandon }: Lifetime): () => void {
  let signalled = false
  const handlers = Object.entries(SIGNALS).map(([signal, number]) => {
    const handler = () => {
      if (signalled) abandon(128 + number)
      signalled = true
      end(signal)
    }
    process.on(signal, handler)
    return { signal, handler }
  })
  const lookForParent = () => {
    if (process.ppid !== parentPid) end('parent_gone')
  }
  const poll = setInterval(lookForParent, PARENT_POLL_MS)
  poll.unref()
  // It may have died before we came to look.
  lookForParent()
  return () => {
    clearInterval(poll)
    for (const { signal, handler } of handlers) process.off(signal, handler)
  }
}
