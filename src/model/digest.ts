// Digests of desired state: what is wanted of one kind in one region, in 256 sums. Agent and control plane each keep
// their own; equal sums mean that both have the same ids, versions and content hashes (docs/adr/0015-digests.md).
//
// - An object is in the bucket that a hash of its id names, so that it stays there whatever changes.
// - A bucket is the sum modulo 2^256 of one hash per object. A sum does not depend on the order of changes, and a change
//   costs one addition, however many objects there are.
// - Stopped objects are in no bucket: a purge of old ones changes no sum.
import { hash } from "node:crypto";

/** What the digest says of one wanted object. */
export interface DigestRow {
  readonly id: string;
  readonly version: bigint;
  /** The control plane's hash of its content; opaque to everybody else. */
  readonly hash: Uint8Array;
}

export const bucketCount = 256;
const sumBytes = 32;
const modulus = 1n << 256n;

export function bucketOf(id: string): number {
  return Number.parseInt(hash("sha256", id, "hex").slice(0, 2), 16);
}

/** The sums of all buckets; grows and shrinks with the objects. */
export class BucketSums {
  private readonly sums: bigint[] = new Array<bigint>(bucketCount).fill(0n);

  add(row: DigestRow): void {
    this.change(row.id, termOf(row));
  }

  subtract(row: DigestRow): void {
    this.change(row.id, modulus - termOf(row));
  }

  get(bucket: number): bigint {
    return this.sums[bucket] ?? 0n;
  }

  /** The sum of all buckets. */
  get whole(): bigint {
    return wholeOf(this.sums);
  }

  all(): readonly bigint[] {
    return [...this.sums];
  }

  private change(id: string, term: bigint): void {
    const bucket = bucketOf(id);
    this.sums[bucket] = (this.get(bucket) + term) % modulus;
  }
}

export function wholeOf(buckets: readonly bigint[]): bigint {
  return buckets.reduce((sum, each) => sum + each, 0n) % modulus;
}

export function sumOf(rows: Iterable<DigestRow>): bigint {
  let sum = 0n;
  for (const row of rows) sum += termOf(row);
  return sum % modulus;
}

/** What an object adds to the sum of its bucket. The length of the id keeps two objects from having the same bytes. */
function termOf({ id, version, hash: content }: DigestRow): bigint {
  const name = Buffer.from(id);
  const numbers = Buffer.alloc(12);
  numbers.writeUInt32BE(name.byteLength, 0);
  numbers.writeBigUInt64BE(version, 4);
  const bytes = Buffer.concat([numbers.subarray(0, 4), name, numbers.subarray(4), content]);
  return BigInt(`0x${hash("sha256", bytes, "hex")}`);
}

export function encodeSums(sums: readonly bigint[]): Uint8Array {
  return Buffer.from(sums.map((sum) => sum.toString(16).padStart(2 * sumBytes, "0")).join(""), "hex");
}

/** Undefined unless it is a whole number of sums. */
export function decodeSums(bytes: Uint8Array): readonly bigint[] | undefined {
  if (bytes.byteLength % sumBytes !== 0) return undefined;
  const text = Buffer.from(bytes).toString("hex");
  const sums = text.match(new RegExp(`.{${2 * sumBytes}}`, "g")) ?? [];
  return sums.map((sum) => BigInt(`0x${sum}`));
}
