// Turns change notifications into iterations of a loop. All changes that come while the loop is busy make one
// iteration, so a slow reader does not accumulate work (K10).
import { onAbort } from "../concurrency/abort-listener.ts";

export interface Changing {
  /** Returns a function that unsubscribes the listener. */
  subscribe(listener: () => void): () => void;
}

/** Yields once immediately, then after changes. Ends when the signal aborts, without an error. */
export async function* changesOf(source: Changing, signal: AbortSignal): AsyncGenerator<undefined> {
  let isChanged = true;
  let wake: () => void = () => undefined;
  const unsubscribe = source.subscribe(() => {
    isChanged = true;
    wake();
  });
  // Immediately, not with the next iteration: a reader that is gone may never take another.
  const stopListening = onAbort(signal, () => {
    unsubscribe();
    wake();
  });
  try {
    while (!signal.aborted) {
      if (isChanged) {
        isChanged = false;
        yield undefined;
        continue;
      }
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    stopListening();
    unsubscribe();
  }
}
