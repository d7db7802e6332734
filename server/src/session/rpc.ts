import { RAL } from 'vscode-jsonrpc/node'

export {
  type CancellationToken,
  createMessageConnection,
  type Disposable,
  Emitter,
  type Event,
  type Message,
  type MessageConnection,
  type MessageReader,
  type MessageWriter,
  type PartialMessageInfo,
  ResponseError,
} from 'vscode-jsonrpc/node'

/**
 * `vscode-jsonrpc` hands on one message a turn of the event loop, so writes that arrived together would reach the store
 * in different turns and never share a transaction (docs/adr/0003-jsonrpc.md has the measurement). Handed on in
 * microtasks, all messages of one chunk of input are handed on before the loop turns, still in order.
 */
const node = RAL()
RAL.install({
  ...node,
  timer: {
    ...node.timer,
    setImmediate: (callback, ...args) => {
      queueMicrotask(() => callback(...args))
      return { dispose: () => {} }
    },
  },
})
