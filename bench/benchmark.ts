// A benchmark of `make bench`: a name to select it by, and lines to print.

export interface Benchmark {
  readonly name: string;
  readonly measures: string;
  /** Leaves no process and no file behind, however it ends. */
  run(signal: AbortSignal): Promise<readonly string[]>;
}
