// Turns "something changed" into steps of a loop. However many changes come while the loop is busy, they
// make one step, so a slow reader costs nothing (K10).
import { onAbort } from "../concurrency/abort-listener.ts";

export interface Changing {
  /** Returns the way to stop listening. */
  subscribe(listener: () => void): () => void;
}

/** A first step at once, then one after every change; ends with the signal, without an error. */
export async function* changesOf(source: Changing, signal: AbortSignal): AsyncGenerator<undefined> {
  let isChanged = true;
  let wake: () => void = () => undefined;
  const unsubscribe = source.subscribe(() => {
    isChanged = true;
    wake();
  });
  // At once, and not with the next step: a reader that is gone may never take one.
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
