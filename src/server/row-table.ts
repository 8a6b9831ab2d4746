// The rows of one kind in one region, indexed by id, by name and by version. A change
// appends to the version index; stale entries stay until they are more than half of it, so
// that neither a change nor a stream's next batch gets slower with many rows.
import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { type KindName, kindOf } from "../kinds/kinds.ts";
import { BucketSums, bucketOf, type DigestRow } from "../model/digest.ts";
import type { BucketContent } from "./buckets.ts";
import { encodeSpec } from "./kind-messages.ts";
import type { Row } from "./store.ts";

const staleRowsMin = 64;

export class RowTable<K extends KindName> {
  private readonly kind: K;
  private readonly byId = new Map<string, Row<K>>();
  private readonly idsByName = new Map<string, string>();
  /** Sorted by version. A row is stale when it is no longer the one in byId. */
  private inOrder: Row<K>[] = [];
  private kept = new BucketSums();

  /** The digest of the rows that are wanted. */
  get sums(): BucketSums {
    return this.kept;
  }

  constructor(kind: K) {
    this.kind = kind;
  }

  get(id: string): Row<K> | undefined {
    return this.byId.get(id);
  }

  idOfName(name: string): string | undefined {
    return this.idsByName.get(name);
  }

  put(change: Row<K>): void {
    const row = { ...change, contentHash: contentHash(this.kind, change) };
    this.leaveDigest(row.id);
    if (row.desired !== "stopped") this.kept.add(digestRow(row));
    this.byId.set(row.id, row);
    this.idsByName.set(kindOf(this.kind).uniqueNameOf(row.spec), row.id);
    const last = this.inOrder.at(-1);
    if (last === undefined || last.version < row.version) this.inOrder.push(row);
    else this.inOrder.splice(this.indexAfter(row.version), 0, row);
    if (this.inOrder.length > 2 * this.byId.size + staleRowsMin) this.inOrder = this.current();
  }

  delete(id: string): boolean {
    const row = this.byId.get(id);
    if (row === undefined) return false;
    this.leaveDigest(id);
    this.byId.delete(id);
    const name = kindOf(this.kind).uniqueNameOf(row.spec);
    if (this.idsByName.get(name) === id) this.idsByName.delete(name);
    return true;
  }

  /** The version of the last row; 0 without one. */
  newest(): bigint {
    for (let index = this.inOrder.length - 1; index >= 0; index--) {
      const row = this.inOrder[index];
      if (row !== undefined && this.byId.get(row.id) === row) return row.version;
    }
    return 0n;
  }

  /** All rows, ordered by version. */
  current(): Row<K>[] {
    return this.inOrder.filter((row) => this.byId.get(row.id) === row);
  }

  after(cursor: bigint, limit: number): Row<K>[] {
    const rows: Row<K>[] = [];
    for (let index = this.indexAfter(cursor); rows.length < limit; index++) {
      const row = this.inOrder[index];
      if (row === undefined) break;
      if (this.byId.get(row.id) === row) rows.push(row);
    }
    return rows;
  }

  /** The buckets with these numbers, in ascending order. */
  buckets(numbers: readonly number[]): readonly BucketContent[] {
    const rows = new Map<number, DigestRow[]>(numbers.toSorted((a, b) => a - b).map((each) => [each, []]));
    for (const row of this.byId.values()) {
      if (row.desired !== "stopped") rows.get(bucketOf(row.id))?.push(digestRow(row));
    }
    return [...rows].map(([number, rows]) => ({ number, sum: this.sums.get(number), rows }));
  }

  /** Computes the digest again, from all rows. Returns whether it was right. */
  verifyDigest(): boolean {
    const before = this.kept;
    this.kept = new BucketSums();
    for (const row of this.byId.values()) if (row.desired !== "stopped") this.kept.add(digestRow(row));
    return isDeepStrictEqual(before, this.kept);
  }

  private leaveDigest(id: string): void {
    const row = this.byId.get(id);
    if (row !== undefined && row.desired !== "stopped") this.kept.subtract(digestRow(row));
  }

  /** The first index after every row up to this version. */
  private indexAfter(version: bigint): number {
    let low = 0;
    let high = this.inOrder.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const row = this.inOrder[middle];
      if (row !== undefined && row.version <= version) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function digestRow({ id, version, contentHash: hash = new Uint8Array() }: Row<KindName>): DigestRow {
  return { id, version, hash };
}

/** Of what is wanted of an object; see model/digest.ts. In PostgreSQL the database computes it, with a key of its own. */
function contentHash<K extends KindName>(
  kind: K,
  { desired, spec }: Pick<Row<K>, "desired" | "spec">,
): Uint8Array {
  return hash("sha256", Buffer.concat([Buffer.from(`${desired}\0`), encodeSpec(kind, spec)]), "buffer");
}
