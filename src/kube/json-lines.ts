// Splits a byte stream into lines. It searches the bytes for newlines and joins the pieces of a line once, when it is
// complete: a chunk may end inside a character, and a line of many megabytes must not cost a copy per chunk.
import { KubeApiError } from "./errors.ts";

const newline = 0x0a;

export class LineSplitter {
  private pieces: Buffer[] = [];
  private pieceBytes = 0;
  private readonly lineBytesMax: number;

  constructor(lineBytesMax: number) {
    this.lineBytesMax = lineBytesMax;
  }

  /** The lines that this chunk completes, without their newline. */
  *push(chunk: Buffer): Generator<Buffer, void, undefined> {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const line = this.join(chunk.subarray(start, end));
      start = end + 1;
      if (line.length > 0) yield line;
    }
    this.keep(chunk.subarray(start));
  }

  /** Bytes of the incomplete last line; more than 0 at the end of the stream means that it was cut. */
  get pendingBytes(): number {
    return this.pieceBytes;
  }

  private join(last: Buffer): Buffer {
    this.keep(last);
    const [first] = this.pieces;
    const line = first?.length === this.pieceBytes ? first : Buffer.concat(this.pieces, this.pieceBytes);
    this.pieces = [];
    this.pieceBytes = 0;
    return line;
  }

  private keep(piece: Buffer): void {
    this.pieceBytes += piece.length;
    if (this.pieceBytes > this.lineBytesMax) {
      throw new KubeApiError("too-large", `a line of the watch exceeds ${this.lineBytesMax} bytes`);
    }
    if (piece.length > 0) this.pieces.push(piece);
  }
}

/**
 * Parses JSON without quoting it in errors: V8 puts a part of the text into its message, and the text may be a
 * Secret (K7).
 */
export function parseJson(what: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new KubeApiError("malformed", `${what}: the response is not JSON`);
  }
}
