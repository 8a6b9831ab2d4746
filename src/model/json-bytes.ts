// Writes JSON as bytes, to be hashed. The same text as a string is thousands of short strings per object: a third of
// all garbage in a flood of new deployments. One buffer is reused for all objects.
import { hash } from "node:crypto";

const quote = 0x22;
const backslash = 0x5c;
const firstPrintable = 0x20;
const lastPrintable = 0x7e;
/** A UTF-16 code unit takes at most this many bytes of UTF-8. */
const bytesPerUnitMax = 3;
const bytesAtStart = 16 * 1024;
/** A larger buffer is not kept for the next object. */
const bytesKeptMax = 256 * 1024;

export class JsonBytes {
  private bytes = Buffer.allocUnsafe(bytesAtStart);
  private used = 0;

  get length(): number {
    return this.used;
  }

  /** Drops what was written after that length. */
  cut(length: number): void {
    this.used = length;
  }

  /** JSON as it is, in ASCII. */
  raw(text: string): void {
    const { length } = text;
    this.reserve(length);
    for (let index = 0; index < length; index++) this.bytes[this.used + index] = text.charCodeAt(index);
    this.used += length;
  }

  string(text: string): void {
    const { length } = text;
    this.reserve(length + 2);
    const { bytes } = this;
    const start = this.used + 1;
    for (let index = 0; index < length; index++) {
      const unit = text.charCodeAt(index);
      if (unit < firstPrintable || unit > lastPrintable || unit === quote || unit === backslash) {
        this.encoded(JSON.stringify(text));
        return;
      }
      bytes[start + index] = unit;
    }
    bytes[this.used] = quote;
    bytes[start + length] = quote;
    this.used = start + length + 1;
  }

  /** The SHA-256 of all that was written, in base64url. Empties the buffer. */
  digest(): string {
    const digest = hash("sha256", this.bytes.subarray(0, this.used), "base64url");
    this.used = 0;
    if (this.bytes.length > bytesKeptMax) this.bytes = Buffer.allocUnsafe(bytesAtStart);
    return digest;
  }

  private encoded(json: string): void {
    this.reserve(json.length * bytesPerUnitMax);
    this.used += this.bytes.write(json, this.used, "utf8");
  }

  private reserve(bytes: number): void {
    const needed = this.used + bytes;
    if (needed <= this.bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.bytes.length));
    this.bytes.copy(larger, 0, 0, this.used);
    this.bytes = larger;
  }
}
