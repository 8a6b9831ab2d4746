import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { Algorithm, Binding, EncryptedSchema } from "../gen/vault/v1/object_pb.ts";
import { parseExactly } from "./envelope.ts";
import { readEnvelope } from "./envelope-bytes.ts";

const usual = {
  nonce: Buffer.alloc(12, 1),
  ciphertext: Buffer.alloc(300, 2),
  encryptionKeyId: "dek_ABCDEFGHIJKLMNOPQRSTUVWX",
  time: 1_700_000_000_000n,
  binding: Binding.NAME,
};

const envelopes = fc.record({
  algorithm: fc.constantFrom(Algorithm.AES_256_GCM, 1 as Algorithm),
  nonce: fc.uint8Array({ maxLength: 16 }),
  ciphertext: fc.uint8Array({ maxLength: 300 }),
  encryptionKeyId: fc.oneof(
    fc.constant(usual.encryptionKeyId),
    fc.string({ unit: "grapheme", maxLength: 9 }),
  ),
  time: fc.oneof(fc.constant(usual.time), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
  binding: fc.constantFrom(0, 1, 2, 3, -1, 300) as fc.Arbitrary<Binding>,
});

/** What was read of the bytes must be what the library reads of them; it may also be nothing. */
function assertAgrees(bytes: Buffer): void {
  const read = readEnvelope(bytes);
  if (read === undefined) return;
  const { $typeName: _, ...expected } = parseExactly(EncryptedSchema, bytes) ?? { $typeName: "" };
  const plain = { ...read, nonce: Buffer.from(read.nonce), ciphertext: Buffer.from(read.ciphertext) };
  const { nonce = [], ciphertext = [] } = expected as Partial<typeof read>;
  assert.deepEqual(plain, { ...expected, nonce: Buffer.from(nonce), ciphertext: Buffer.from(ciphertext) });
}

test("an envelope as vaults write it is read, with every binding", () => {
  for (const binding of [Binding.NONE, Binding.KEYRING, Binding.NAME]) {
    const bytes = Buffer.from(toBinary(EncryptedSchema, create(EncryptedSchema, { ...usual, binding })));
    assert.equal(readEnvelope(bytes)?.encryptionKeyId, usual.encryptionKeyId);
    assertAgrees(bytes);
  }
});

test("a number that is too large for its field is not read", () => {
  const bytes = Buffer.from(toBinary(EncryptedSchema, create(EncryptedSchema, usual)));
  const [tag = 0] = bytes.subarray(-2);
  // The library drops the bits above the 32nd, and finds 2, as it was.
  const tooLarge = [tag, 0x82, 0x80, 0x80, 0x80, 0x10];
  assertAgrees(Buffer.concat([bytes.subarray(0, -2), Buffer.from(tooLarge)]));
});

test("of any envelope, it reads what the library reads, or nothing", () => {
  fc.assert(
    fc.property(envelopes, (fields) =>
      assertAgrees(Buffer.from(toBinary(EncryptedSchema, create(EncryptedSchema, fields)))),
    ),
  );
});

test("of bytes that were changed, cut or extended, it reads what the library reads, or nothing", () => {
  const whole = Buffer.from(toBinary(EncryptedSchema, create(EncryptedSchema, usual)));
  const change = fc.record({
    at: fc.nat({ max: whole.length }),
    removed: fc.nat({ max: 3 }),
    added: fc.uint8Array({ maxLength: 3 }),
  });
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
      let bytes = whole;
      for (const { at, removed, added } of changes)
        bytes = Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)]);
      assertAgrees(bytes);
    }),
    { numRuns: 2_000 },
  );
});
