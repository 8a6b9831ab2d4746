// A worker's side of the channel to the benchmark that started it.

export const taskVariable = "KRANE_BENCH_TASK";

/** What the worker is asked to do. From here on it ends when the benchmark ends. */
export function takeTask<T>(): T {
  process.once("disconnect", () => process.exit());
  return JSON.parse(process.env[taskVariable] ?? "null") as T;
}

export function tellParent(message: unknown): void {
  process.send?.(message);
}

/** For workers that do one thing: tells the result and ends. */
export function finish(result: unknown): void {
  process.send?.(result, () => process.exit());
}
