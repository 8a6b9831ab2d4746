// Listens to an AbortSignal. Node warns about a leak at the eleventh listener of a signal, but here many workers wait on
// one signal by design, so the warning is off; the tests count listeners instead.
import { setMaxListeners } from "node:events";

/**
 * Calls back once when the signal aborts; never if it has already aborted. Returns the function that removes the listener,
 * which must be called when the wait is over.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  setMaxListeners(0, signal);
  signal.addEventListener("abort", callback, { once: true });
  return () => signal.removeEventListener("abort", callback);
}
