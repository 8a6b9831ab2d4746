import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { BucketSums, bucketCount, bucketOf, decodeSums, encodeSums, sumOf, wholeOf } from "./digest.ts";

const row = fc.record({
  id: fc.string({ maxLength: 4, unit: "binary" }),
  version: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  hash: fc.uint8Array({ maxLength: 4 }),
});
const sum = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });

test("a sum is the one that the protocol describes", () => {
  const digest = createHash("sha256");
  digest.update(Buffer.from([0, 0, 0, 3]));
  digest.update("d_1");
  digest.update(Buffer.from([0, 0, 0, 0, 0, 0, 1, 2]));
  digest.update(Buffer.from([7, 8]));
  const expected = BigInt(`0x${digest.digest("hex")}`);
  const sums = new BucketSums();
  sums.add({ id: "d_1", version: 258n, hash: Buffer.from([7, 8]) });
  const [bucket = -1] = createHash("sha256").update("d_1").digest();
  assert.deepEqual([bucketOf("d_1"), sums.get(bucket), sums.whole], [bucket, expected, expected]);
});

test("sums are those of what is left, in whatever order it came and went", () => {
  fc.assert(
    fc.property(fc.array(row), fc.array(row), fc.infiniteStream(fc.nat()), (kept, gone, order) => {
      const sums = new BucketSums();
      const ordered = [...kept, ...gone].toSorted(() => (order.next().value % 2) - 0.5);
      for (const each of ordered) sums.add(each);
      for (const each of gone) sums.subtract(each);
      const expected = [...Array(bucketCount).keys()].map((bucket) =>
        sumOf(kept.filter(({ id }) => bucketOf(id) === bucket)),
      );
      assert.deepEqual(sums.all(), expected);
      assert.deepEqual([sums.whole, wholeOf(expected)], [sumOf(kept), sumOf(kept)]);
    }),
  );
});

test("rows that differ in anything have different sums", () => {
  fc.assert(
    fc.property(row, row, (one, other) => {
      const isSame = one.id === other.id && one.version === other.version;
      fc.pre(!isSame || Buffer.compare(one.hash, other.hash) !== 0);
      assert.notEqual(sumOf([one]), sumOf([other]));
    }),
  );
});

test("sums survive the wire, and bytes that are no sums are not taken for any", () => {
  fc.assert(
    fc.property(fc.array(sum, { maxLength: 5 }), (sums) =>
      assert.deepEqual(decodeSums(encodeSums(sums)), sums),
    ),
  );
  assert.equal(decodeSums(new Uint8Array(33)), undefined);
});
