// Which of two quantities is more, whatever their suffixes.
import { parseQuantity } from "../quantities.ts";

const nanosPerUnit = 1_000_000_000n;

export function compareQuantities(left: string, right: string): number {
  const difference = nanosOf(left) - nanosOf(right);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

export function isWholeQuantity(text: string): boolean {
  return nanosOf(text) % nanosPerUnit === 0n;
}

// What is no quantity was refused when the request was read.
function nanosOf(text: string): bigint {
  return parseQuantity(text)?.nanos ?? 0n;
}
