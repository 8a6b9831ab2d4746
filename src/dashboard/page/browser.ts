// The only file that takes time and timers from the browser. Everything else gets them as an argument.

export interface Browser {
  nowMs(): number;
  /** Returns a function that cancels it. */
  after(delayMs: number, work: () => void): () => void;
}

export function createBrowser(): Browser {
  return {
    nowMs: () => Date.now(),
    after(delayMs, work) {
      const timer = setTimeout(work, delayMs);
      return () => clearTimeout(timer);
    },
  };
}

/** In the reader's language and time zone, to the second. */
export function exactTime(ms: number): string {
  return new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
