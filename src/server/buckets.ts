// The buckets of a digest with their rows, and how many go into one response.
import type { DigestRow } from "../model/digest.ts";

/** A bucket of a digest. */
export interface BucketContent {
  readonly number: number;
  /** According to the digest. */
  readonly sum: bigint;
  /** Every wanted row in it. */
  readonly rows: readonly DigestRow[];
}

/** Limits the rows of one list of buckets, so that a response stays below what an agent accepts. */
export const bucketRowsMax = 10_000;

/** The first buckets that have few enough rows together; at least one. */
export function withinLimit(buckets: readonly BucketContent[]): readonly BucketContent[] {
  let rows = 0;
  return buckets.filter(({ rows: { length } }, index) => {
    rows += length;
    return index === 0 || rows <= bucketRowsMax;
  });
}
