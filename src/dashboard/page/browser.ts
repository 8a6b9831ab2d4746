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

const timeOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** Without the day; fast enough for thousands of lines. */
export function dayTime(ms: number): string {
  return timeOfDay.format(ms);
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** The name of the provider that people sign in with; undefined if there is none, or if the server does not answer. */
export async function loadProvider(): Promise<string | undefined> {
  try {
    const response = await fetch("/dashboard/provider");
    // Without a provider, the path is one of a view.
    if (response.headers.get("content-type") !== "application/json") return undefined;
    return ((await response.json()) as { readonly name: string }).name;
  } catch {
    return undefined;
  }
}
