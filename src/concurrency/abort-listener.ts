// Listening to an AbortSignal without leaking and without false alarms. Node warns of
// a leak at the eleventh listener of one signal, but a signal that many workers wait
// on is what a signal is for here; the tests count listeners instead.
import { setMaxListeners } from "node:events";

/**
 * Calls back once when the signal aborts; not at all when it has aborted before.
 * The function returned takes the listener away, and must be called when the wait is over.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  setMaxListeners(0, signal);
  signal.addEventListener("abort", callback, { once: true });
  return () => signal.removeEventListener("abort", callback);
}
