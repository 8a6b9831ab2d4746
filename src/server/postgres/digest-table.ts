// The digests of desired state, in the table `digests`. Triggers on `objects` keep them, in the transaction of each
// change, whichever server makes it; see migration-steps.ts. Here they are read, and compared with the rows now and then.
import { type KindName, kindNames } from "../../kinds/kinds.ts";
import { bucketCount, type DigestRow } from "../../model/digest.ts";
import { bucketRowsMax, withinLimit } from "../buckets.ts";
import { unknownRegion } from "../row-rules.ts";
import type { BucketContents, KindDigest } from "../store.ts";
import type { Database } from "./database.ts";
import { type IncarnationRow, incarnationColumns, incarnationOf } from "./incarnation-table.ts";
import { lockRegion } from "./object-table.ts";

interface ReadFrom extends IncarnationRow {
  readonly counter: string;
}

interface DigestResult extends ReadFrom {
  readonly sum: string;
  readonly newest: string;
  /** Bucket and sum; null if the sum is the known one, or every bucket is empty. */
  readonly buckets: readonly (readonly [string, string])[] | null;
}

/** A sum of the digest, or a row of the list; neither if there are none. */
interface ContentResult extends ReadFrom {
  readonly bucket: number | null;
  readonly sum: string | null;
  readonly id: string | null;
  readonly version: string | null;
  readonly content_hash: Buffer | null;
}

export class DigestTable {
  private readonly database: Database;
  private readonly rowsPerSlice: number;

  constructor(database: Database, rowsPerSlice = 5_000) {
    this.database = database;
    this.rowsPerSlice = rowsPerSlice;
  }

  async digest(region: string, kind: KindName, knownSum?: bigint): Promise<KindDigest> {
    const [row] = await this.database.read<DigestResult>(
      `SELECT r.counter, ${incarnationColumns}, w.sum,
         coalesce((SELECT max(version) FROM objects o WHERE o.region = r.name AND o.kind = $2), 0) AS newest,
         CASE WHEN w.sum IS DISTINCT FROM $3::numeric THEN (
           SELECT array_agg(ARRAY[d.bucket::text, d.sum::text])
           FROM digests d WHERE d.region = r.name AND d.kind = $2
         ) END AS buckets
       FROM regions r CROSS JOIN LATERAL (
         SELECT digest_sum(coalesce(sum(d.sum), 0)) AS sum
         FROM digests d WHERE d.region = r.name AND d.kind = $2
       ) w WHERE r.name = $1`,
      [region, kind, knownSum === undefined ? null : String(knownSum)],
    );
    if (row === undefined) throw unknownRegion(region);
    const sum = BigInt(row.sum);
    return {
      sum,
      ...(sum !== knownSum && { buckets: allBuckets(row.buckets ?? []) }),
      newestVersion: BigInt(row.newest),
      counter: BigInt(row.counter),
      incarnation: incarnationOf(row),
    };
  }

  async contents(region: string, kind: KindName, buckets: readonly number[]): Promise<BucketContents> {
    const found = await this.readContents(region, kind, buckets, bucketRowsMax + 1);
    if (found.rowCount <= bucketRowsMax) return found;
    // The last bucket may be cut, and those behind it are missing.
    const last = found.buckets.findLastIndex(({ rows }) => rows.length > 0);
    const whole = found.buckets.slice(0, last);
    if (whole.length > 0) return { ...found, buckets: withinLimit(whole) };
    const first = found.buckets.slice(0, 1).map(({ number }) => number);
    return this.readContents(region, kind, first, null);
  }

  /** In one statement, hence in one snapshot. */
  private async readContents(
    region: string,
    kind: KindName,
    buckets: readonly number[],
    rowsMax: number | null,
  ): Promise<BucketContents & { readonly rowCount: number }> {
    const results = await this.database.read<ContentResult>(
      `SELECT r.counter, ${incarnationColumns}, x.* FROM regions r LEFT JOIN LATERAL (
         SELECT d.bucket, d.sum, NULL AS id, NULL::bigint AS version, NULL::bytea AS content_hash
         FROM digests d WHERE d.region = r.name AND d.kind = $2 AND d.bucket = ANY ($3::smallint[])
         UNION ALL
         SELECT o.* FROM (
           SELECT bucket, NULL::numeric, id, version, content_hash FROM objects
           WHERE region = r.name AND kind = $2 AND bucket = ANY ($3::smallint[])
             AND desired <> 'stopped' AND content_hash IS NOT NULL
           ORDER BY bucket LIMIT $4
         ) o
       ) x ON true WHERE r.name = $1`,
      [region, kind, buckets, rowsMax],
    );
    const [first] = results;
    if (first === undefined) throw unknownRegion(region);
    const sums = new Map<number, bigint>();
    const rows = new Map<number, DigestRow[]>(buckets.toSorted((a, b) => a - b).map((each) => [each, []]));
    for (const { bucket, sum, id, version, content_hash } of results) {
      if (bucket === null) continue;
      if (id === null) sums.set(bucket, BigInt(sum ?? 0));
      else if (content_hash !== null)
        rows.get(bucket)?.push({ id, version: BigInt(version ?? 0), hash: new Uint8Array(content_hash) });
    }
    const listed = [...rows].map(([number, rows]) => ({ number, sum: sums.get(number) ?? 0n, rows }));
    return {
      buckets: listed,
      rowCount: listed.reduce((sum, { rows }) => sum + rows.length, 0),
      counter: BigInt(first.counter),
      incarnation: incarnationOf(first),
    };
  }

  /** Corrects rows and sums that are wrong. In slices, so that no statement takes long, however many rows there are. */
  async verify(region: string): Promise<readonly KindName[]> {
    const wrong: KindName[] = [];
    for (const kind of kindNames) {
      const slices = await this.slices(region, kind);
      // All rows first: a corrected row may move to another bucket, and changes the sum there.
      const rows = await this.mend(slices, region, kind, wrongRow, correctRows);
      const sums = await this.mend(slices, region, kind, wrongSum, correctSums);
      if (rows || sums) wrong.push(kind);
    }
    return wrong;
  }

  private async slices(region: string, kind: KindName): Promise<readonly Slice[]> {
    const [row] = await this.database.read<{ count: string }>(
      "SELECT count(*) FROM objects WHERE region = $1 AND kind = $2",
      [region, kind],
    );
    const count = Math.min(bucketCount, Math.max(1, Math.ceil(Number(row?.count) / this.rowsPerSlice)));
    // Somebody may have written any number as a bucket.
    const bounds = [...Array(count).keys()].map((index) => Math.round((index * bucketCount) / count));
    return bounds.map((from, index) => ({
      from: index === 0 ? -32_768 : from,
      to: (bounds[index + 1] ?? 32_768) - 1,
    }));
  }

  /** Whether anything was wrong. */
  private async mend(
    slices: readonly Slice[],
    region: string,
    kind: KindName,
    wrong: string,
    correct: readonly string[],
  ): Promise<boolean> {
    let isWrong = false;
    for (const { from, to } of slices) {
      const values = [region, kind, from, to];
      const [found] = await this.database.read(`${wrong} LIMIT 1`, values);
      if (found === undefined) continue;
      isWrong = true;
      await this.database.transact(async (session) => {
        await lockRegion(session, region);
        for (const statement of correct) await session.query(statement, values);
      });
    }
    return isWrong;
  }
}

/** A range of buckets. */
interface Slice {
  readonly from: number;
  readonly to: number;
}

// Of the region $1, the kind $2 and the buckets from $3 to $4. Rows without a bucket are in the first slice.
const wrongRow = `
  SELECT o.id FROM objects o WHERE o.region = $1 AND o.kind = $2
    AND (o.bucket BETWEEN $3 AND $4 OR (o.bucket IS NULL AND $3 < 0))
    AND (o.bucket, o.content_hash) IS DISTINCT FROM (bucket_of(o.id), content_hash_of(o.desired, o.format, o.spec))`;

/** The triggers compute the hash again. */
const correctRows = [
  `UPDATE objects SET content_hash = NULL WHERE region = $1 AND kind = $2 AND id IN (${wrongRow})`,
];

const countedSums = `
  SELECT o.bucket, digest_sum(sum(digest_term(o.id, o.version, o.content_hash))) AS sum FROM objects o
  WHERE o.region = $1 AND o.kind = $2 AND o.bucket BETWEEN $3 AND $4 AND o.desired <> 'stopped' GROUP BY o.bucket`;

const storedSums = "FROM digests WHERE region = $1 AND kind = $2 AND bucket BETWEEN $3 AND $4";

const wrongSum = `
  SELECT bucket FROM (${countedSums}) c FULL JOIN (SELECT bucket, sum ${storedSums}) d USING (bucket)
  WHERE coalesce(c.sum, 0) <> coalesce(d.sum, 0)`;

const correctSums = [
  `DELETE ${storedSums}`,
  `INSERT INTO digests (region, kind, bucket, sum) SELECT $1, $2, c.bucket, c.sum FROM (${countedSums}) c`,
];

function allBuckets(stored: readonly (readonly [string, string])[]): readonly bigint[] {
  const sums = new Map(stored.map(([bucket, sum]) => [Number(bucket), BigInt(sum)]));
  return Array.from({ length: bucketCount }, (_, bucket) => sums.get(bucket) ?? 0n);
}
