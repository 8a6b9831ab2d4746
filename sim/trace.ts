// Everything that happens in a world, one line per step. The hash over all lines tells whether two runs were equal.
import { createHash } from "node:crypto";

const keptLines = 400;

export class Trace {
  private readonly hash = createHash("sha256");
  private readonly kept: string[] = [];
  private readonly nowMs: () => number;
  private readonly onLine: ((line: string) => void) | undefined;
  count = 0;

  constructor(nowMs: () => number, onLine?: (line: string) => void) {
    this.nowMs = nowMs;
    this.onLine = onLine;
  }

  add(who: string, what: string): void {
    const line = `${(this.nowMs() / 1_000).toFixed(3)} ${who}: ${what}`;
    this.hash.update(line).update("\n");
    this.count += 1;
    this.kept.push(line);
    if (this.kept.length > 2 * keptLines) this.kept.splice(0, keptLines);
    this.onLine?.(line);
  }

  /** The last lines, oldest first. */
  last(count: number): readonly string[] {
    return this.kept.slice(-count);
  }

  digest(): string {
    return this.hash.copy().digest("hex").slice(0, 16);
  }
}
