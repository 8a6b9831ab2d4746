// docs/vault.md is what somebody reads who writes another vault, or has only the storage
// and the master keys left. What it says about the format is followed here exactly,
// with node:crypto and nothing of krane's own envelope.
import assert from "node:assert/strict";
import { createDecipheriv } from "node:crypto";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { parseVaultConfig } from "../../src/config/parse.ts";
import { renderProblems } from "../../src/config/render.ts";
import {
  DataEncryptionKeySchema,
  type Encrypted,
  EncryptedDataEncryptionKeySchema,
  EncryptedSchema,
  KeyEncryptionKeySchema,
} from "../../src/gen/vault/v1/object_pb.ts";
import { bulkItemsMax, valueBytesMax } from "../../src/vault/embedded-vault.ts";
import { generateMasterKey } from "../../src/vault/master-keys.ts";
import { createMemoryStorage } from "../../src/vault/storage/memory-storage.ts";
import { readProjectFile } from "../support/project-files.ts";
import { createTestVault } from "../support/vault-fixture.ts";

const page = readProjectFile("docs/vault.md");
const { signal } = new AbortController();

/** The texts of a row of the table "Additional data", with the words in it replaced by what they stand for. */
function rowOf(label: string, words: Readonly<Record<string, string>>): string[] {
  const row = page.split("\n").find((line) => line.startsWith(`| ${label}`));
  const cell = row?.split("|")[2] ?? assert.fail(`no row ${label}`);
  return cell.split(",").map((part) => {
    const text = part.trim();
    const quoted = /^`(.*)`$/.exec(text)?.[1];
    if (quoted !== undefined && quoted !== "time") return quoted;
    return words[quoted ?? text] ?? assert.fail(`what is ${text}?`);
  });
}

function open({ nonce, ciphertext }: Encrypted, key: Uint8Array, parts: readonly string[]): Buffer {
  const additionalData = parts.flatMap((part) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(Buffer.byteLength(part));
    return [length, Buffer.from(part)];
  });
  const opening = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: 16 });
  opening.setAAD(Buffer.concat(additionalData)).setAuthTag(ciphertext.subarray(-16));
  return Buffer.concat([opening.update(ciphertext.subarray(0, -16)), opening.final()]);
}

test("with the storage, the master key and this page alone, a value can be read", async () => {
  const masterKeyText = generateMasterKey(0);
  const storage = createMemoryStorage();
  const vault = createTestVault({ storage, keys: [masterKeyText] });
  const keyring = "env_1";
  const masterKey = fromBinary(KeyEncryptionKeySchema, Buffer.from(masterKeyText, "base64"));
  for (const context of [undefined, "DB_PASSWORD"]) {
    const value = await vault.encrypt({ keyring, data: "the value", context }, signal);
    const message = fromBinary(EncryptedSchema, Buffer.from(value.encrypted, "base64"));
    const stored = await storage.read(`keyring/${keyring}/${message.encryptionKeyId}`, signal);
    const wrapped = fromBinary(EncryptedDataEncryptionKeySchema, stored?.bytes ?? new Uint8Array());
    const words = {
      keyring,
      "data key id": message.encryptionKeyId,
      "master key id": masterKey.id,
      ...(context === undefined ? {} : { name: context }),
    };
    assert.ok(wrapped.encrypted);
    const wrapRow = rowOf("of a stored data key", { ...words, time: String(wrapped.encrypted.time) });
    const dataKey = fromBinary(DataEncryptionKeySchema, open(wrapped.encrypted, masterKey.key, wrapRow));
    const label = context === undefined ? "`BINDING_KEYRING`" : "`BINDING_NAME`";
    const valueRow = rowOf(label, { ...words, time: String(message.time) });
    assert.equal(open(message, dataKey.key, valueRow).toString(), "the value");
  }
});

test("the configurations on the page are valid", () => {
  const blocks = [...page.matchAll(/```toml\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  assert.equal(blocks.length, 3);
  for (const [index, text] of blocks.entries()) {
    const use = index === 2 ? "serve" : "call";
    const outcome = parseVaultConfig(
      { file: { path: "vault.toml", text }, env: {}, flags: {}, randomId: () => "a" },
      use,
    );
    assert.equal(outcome.kind, "valid", outcome.kind === "invalid" ? renderProblems(outcome.problems) : "");
    assert.deepEqual(outcome.warnings, []);
  }
});

test("the limits on the page are those of the code", () => {
  assert.equal(valueBytesMax, 1024 * 1024);
  assert.match(page, /\| A value \| 1 MiB /);
  assert.match(page, new RegExp(`\\| A bulk \\| ${bulkItemsMax.toLocaleString("en")} items;`));
});
