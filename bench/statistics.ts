// The statistics that benchmarks print.

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Nearest-rank percentile: always a measured value. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = Math.max(Math.ceil((percent / 100) * sorted.length), 1);
  const value = sorted[rank - 1];
  if (value === undefined) throw new Error("no values to take a percentile of");
  return value;
}

export function ratio(a: number, b: number): string {
  return (a / b).toFixed(2);
}
