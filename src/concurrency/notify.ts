/**
 * Calls an observer (a log, a metric) and ignores what it throws, synchronously or from a promise. A metric with a wrong
 * label must not end a loop, lose a key or keep a probe.
 */
export function notify(observer: () => unknown): void {
  new Promise((resolve) => resolve(observer())).catch(() => undefined);
}
