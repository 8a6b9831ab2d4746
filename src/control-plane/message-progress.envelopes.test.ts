import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EnvelopeScan } from "./message-progress.ts";

function envelope(length: number): Buffer {
  const bytes = Buffer.alloc(5 + length, 0xff);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

test("the boundaries of messages are found, however their bytes are cut", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(300), { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
      (lengths, cuts) => {
        const bytes = Buffer.concat(lengths.map(envelope));
        const ends = lengths.map(
          (_, index) => Buffer.concat(lengths.slice(0, index + 1).map(envelope)).length,
        );
        const scan = new EnvelopeScan();
        for (let offset = 0, cut = 0; offset < bytes.length; cut++) {
          const end = Math.min(bytes.length, offset + (cuts[cut % cuts.length] ?? 1));
          const hasEnded = ends.some((one) => one > offset && one <= end);
          assert.equal(scan.take(bytes.subarray(offset, end)), hasEnded);
          assert.equal(scan.isInMessage, !ends.includes(end));
          offset = end;
        }
      },
    ),
  );
});
