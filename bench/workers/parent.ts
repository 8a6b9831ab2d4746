// A worker's side of the channel to the benchmark that started it.

export const taskVariable = "KRANE_BENCH_TASK";

/** The worker's task. From here on the worker ends when the benchmark ends. */
export function takeTask<T>(): T {
  process.once("disconnect", () => process.exit());
  return JSON.parse(process.env[taskVariable] ?? "null") as T;
}

export function tellParent(message: unknown): void {
  process.send?.(message);
}

/** For workers that do one thing: sends the result and exits. */
export function finish(result: unknown): void {
  process.send?.(result, () => process.exit());
}
