// What `make bench` runs: a name to choose it by, and lines to print.

export interface Benchmark {
  readonly name: string;
  readonly measures: string;
  run(): Promise<readonly string[]>;
}
