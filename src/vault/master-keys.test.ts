import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ConfigError } from "../config/error.ts";
import { Secret } from "../config/secret.ts";
import { KeyEncryptionKeySchema } from "../gen/vault/v1/object_pb.ts";
import { createMasterKeySource, generateMasterKey, parseMasterKeys } from "./master-keys.ts";

const { signal } = new AbortController();

function keyWith(id: string, key: Uint8Array): string {
  const message = create(KeyEncryptionKeySchema, { id, createdAt: 1n, key });
  return Buffer.from(toBinary(KeyEncryptionKeySchema, message)).toString("base64");
}

test("a generated key is valid for the setting, and no two are equal", () => {
  const [one, other] = [generateMasterKey(1), generateMasterKey(2)];
  const keys = parseMasterKeys(`${one}\n${other}`);
  const message = fromBinary(KeyEncryptionKeySchema, Buffer.from(other, "base64"));
  assert.equal(keys.newest.id, message.id);
  assert.deepEqual(keys.newest.key.export(), Buffer.from(message.key));
  assert.notEqual(one, other);
});

test("an invalid key is reported by its position, and never quoted", () => {
  const good = generateMasterKey(1);
  const wrong = [
    Buffer.from("a plain secret of 32 characters!").toString("base64"),
    keyWith("kek_12345678", new Uint8Array(16)),
    keyWith("../kek", new Uint8Array(32)),
    keyWith("", new Uint8Array(32)),
  ];
  for (const text of wrong)
    assert.throws(
      () => parseMasterKeys(`${good}\n${text}`),
      (error) =>
        error instanceof ConfigError &&
        /^vault\.master_keys: entry 2 /.test(error.message) &&
        !error.message.includes(text) &&
        !JSON.stringify(error).includes("secret of 32"),
    );
});

test("two keys with the same id are rejected, the same key twice is not", () => {
  const key = keyWith("kek_12345678", new Uint8Array(32).fill(1));
  assert.equal(parseMasterKeys(`${key}\n${key}`).newest.id, "kek_12345678");
  const other = keyWith("kek_12345678", new Uint8Array(32).fill(2));
  assert.throws(() => parseMasterKeys(`${key}\n${other}`), /has the id of another entry, kek_12345678/);
});

test("a change of the file is followed, and an invalid one keeps the current keys", async () => {
  const [first, second] = [generateMasterKey(1), generateMasterKey(2)];
  let text = first;
  const failures: string[] = [];
  const source = createMasterKeySource(
    { current: async () => new Secret(text), refresh: () => undefined },
    (error) => failures.push(error.message),
  );
  const newest = async () => (await source.current(signal)).newest.id;
  const before = await newest();
  text = `${first}\nbm90IGEga2V5`;
  assert.equal(await newest(), before);
  assert.equal(await newest(), before);
  assert.equal(failures.length, 1, "reported once, not at every read");
  text = `${first}\n${second}`;
  assert.notEqual(await newest(), before);
});
