// Splits the log of a container into lines, as Kubernetes sends them with their times. A line of any length takes a limited
// amount of memory: what is longer is cut off and counted.
import { utcNanos } from "../../concurrency/clock.ts";

export interface ReadLine {
  /** By the clock of the node; 0 if Kubernetes sent no time. */
  readonly timeNs: bigint;
  readonly text: string;
  readonly cutBytes: number;
}

const newline = 0x0a;
// The container runtime splits longer lines itself.
export const lineBytesMax = 16 * 1024;
// Before each line, and a blank.
const timeBytesMax = 40;

export class LogLines {
  private pieces: Buffer[] = [];
  private keptBytes = 0;
  private cutBytes = 0;

  /** The lines that this chunk completes. */
  *push(chunk: Buffer): Generator<ReadLine, void, undefined> {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      this.keep(chunk.subarray(start, end));
      start = end + 1;
      yield this.take();
    }
    this.keep(chunk.subarray(start));
  }

  /** The last line if it has no end, as when the container was killed. */
  rest(): ReadLine | undefined {
    return this.keptBytes === 0 ? undefined : this.take();
  }

  private keep(piece: Buffer): void {
    const kept = piece.subarray(0, Math.max(0, lineBytesMax + timeBytesMax - this.keptBytes));
    // A copy: the piece would keep its whole chunk in memory.
    if (kept.length > 0) this.pieces.push(Buffer.from(kept));
    this.keptBytes += kept.length;
    this.cutBytes += piece.length - kept.length;
  }

  private take(): ReadLine {
    const { cutBytes } = this;
    const whole = Buffer.concat(this.pieces, this.keptBytes);
    this.pieces = [];
    this.keptBytes = 0;
    this.cutBytes = 0;
    const blank = whole.subarray(0, timeBytesMax).indexOf(" ");
    const timeNs = blank === -1 ? undefined : utcNanos(whole.toString("latin1", 0, blank));
    const content = timeNs === undefined ? whole : whole.subarray(blank + 1);
    const text = content.toString("utf8", 0, lineBytesMax).replace(/\r$/, "");
    return { timeNs: timeNs ?? 0n, text, cutBytes: cutBytes + Math.max(0, content.length - lineBytesMax) };
  }
}
