// Observers (logs, metrics) are told what happened; they never change what happens
// next. A metric with a wrong label must not end a loop, lose a key or hold a probe.

/** Calls an observer. What it throws, at once or from a promise, stops here. */
export function notify(observer: () => unknown): void {
  new Promise((resolve) => resolve(observer())).catch(() => undefined);
}
