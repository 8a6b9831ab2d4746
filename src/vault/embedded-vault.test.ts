import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { Secret } from "../config/secret.ts";
import {
  Binding,
  type Encrypted,
  EncryptedDataEncryptionKeySchema,
  EncryptedSchema,
} from "../gen/vault/v1/object_pb.ts";
import { createEmbeddedVault, type EmbeddedVaultOptions, valueBytesMax } from "./embedded-vault.ts";
import { createMasterKeySource, generateMasterKey } from "./master-keys.ts";
import { createMemoryStorage } from "./storage/memory-storage.ts";
import type { VaultStorage } from "./storage/storage.ts";
import { VaultError, type VaultErrorCode } from "./vault-error.ts";

const { signal } = new AbortController();
const clock = new FakeClock();

function sourceOf(...keys: readonly string[]) {
  const secret = new Secret(keys.join("\n"));
  return createMasterKeySource({ current: async () => secret, refresh: () => undefined });
}

const masterKey = generateMasterKey(0);

function createTestVault(
  options: Partial<EmbeddedVaultOptions> & { storage?: VaultStorage; keys?: readonly string[] } = {},
) {
  const { storage = createMemoryStorage(), keys = [masterKey], ...rest } = options;
  const deps = { storage, masterKeys: sourceOf(...keys), clock };
  return createEmbeddedVault({ format: "krane", ...rest }, deps);
}

/** A storage that records the requested paths. */
function watched(storage: VaultStorage) {
  const asked: string[] = [];
  const read: VaultStorage["read"] = (objectKey, aborted) => {
    asked.push(objectKey);
    return storage.read(objectKey, aborted);
  };
  return { asked, storage: { ...storage, read } };
}

const failsWith = (code: VaultErrorCode) => (error: unknown) =>
  error instanceof VaultError && error.code === code;

const parse = (encrypted: string) => fromBinary(EncryptedSchema, Buffer.from(encrypted, "base64"));
const render = (message: Encrypted) => Buffer.from(toBinary(EncryptedSchema, message)).toString("base64");

function lengthDelimited(number: number, bytes: Uint8Array): Buffer {
  return Buffer.from(new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(bytes).finish());
}

const unknownFields: readonly (readonly [string, Buffer])[] = [
  ["a varint", Buffer.from(new BinaryWriter().tag(100, WireType.Varint).uint32(1).finish())],
  ["an empty text", lengthDelimited(15, new Uint8Array())],
  ["a text", lengthDelimited(536_870_911, Buffer.from("more"))],
];

describe("data from the original vault", () => {
  const originalKey =
    "Ch9rZWtfMmdqMFBJdVhac1NSa0ZhNE5mOWlLSnBHenFPENTt7an5MRogENt9Si6wms4pQ2XIvqNSIgNpaBenJmXgcInhu6Nfv2U=";
  const storedKey =
    "CgxkZWtfVGVzdFZlYzEQgNCV/7wxGn8SDAABAgMEBQYHCAkKCxpHw+39hiJOERqZJt/Q1MJkHogAOwAibaZHRWM6nmlaWKInwFogs0tXl/xSR6tXAdoKZmfuYHbuKhplmIGQGhGlwm9VQDmhACMiH2tla18yZ2owUEl1WFpzU1JrRmE0TmY5aUtKcEd6cU8ogNCV/7wx";
  const encrypted =
    "EgxkZWZnaGlqa2xtbm8aGyB+sgoWyT3sXww6fp53TWnhY7edCgtd2sQFrCIMZGVrX1Rlc3RWZWMxKIDQlf+8MQ==";

  async function storageOfTheOriginal() {
    const storage = createMemoryStorage();
    await storage.create("keyring/env_1/dek_TestVec1", Buffer.from(storedKey, "base64"), signal);
    await storage.create("keyring/env_1/LATEST", Buffer.from(storedKey, "base64"), signal);
    return storage;
  }

  test("is decrypted, with and without a name", async () => {
    const vault = createTestVault({ storage: await storageOfTheOriginal(), keys: [originalKey] });
    assert.equal(await vault.decrypt({ keyring: "env_1", encrypted }, signal), "hello krane");
    assert.equal(await vault.decrypt({ keyring: "env_1", encrypted, context: "ANY" }, signal), "hello krane");
    const opened = await vault.decryptBulk({ keyring: "env_1", items: new Map([["A", encrypted]]) }, signal);
    assert.deepEqual([...opened], [["A", "hello krane"]]);
  });

  test("keeps its newest data key, and is not bound when written in its format", async () => {
    const vault = createTestVault({
      storage: await storageOfTheOriginal(),
      keys: [originalKey],
      format: "original",
    });
    const value = await vault.encrypt({ keyring: "env_1", data: "x", context: "NAME" }, signal);
    assert.equal(value.keyId, "dek_TestVec1");
    const message = parse(value.encrypted);
    assert.equal(message.binding, Binding.NONE);
    assert.equal(message.ciphertext.length, 1 + 16);
    assert.equal(await vault.decrypt({ keyring: "env_1", encrypted: value.encrypted }, signal), "x");
  });

  test("a new value under its data key does not decrypt in another keyring with the same data key", async () => {
    const storage = await storageOfTheOriginal();
    await storage.create("keyring/env_2/dek_TestVec1", Buffer.from(storedKey, "base64"), signal);
    const vault = createTestVault({ storage, keys: [originalKey] });
    const value = await vault.encrypt({ keyring: "env_1", data: "x" }, signal);
    assert.equal(await vault.decrypt({ keyring: "env_2", encrypted }, signal), "hello krane");
    await assert.rejects(
      vault.decrypt({ keyring: "env_2", encrypted: value.encrypted }, signal),
      failsWith("undecryptable"),
    );
  });

  test("is bound to its name by re-encrypting it", async () => {
    const vault = createTestVault({ storage: await storageOfTheOriginal(), keys: [originalKey] });
    const bound = await vault.reEncrypt({ keyring: "env_1", encrypted, context: "NAME" }, signal);
    const { encrypted: text } = bound;
    assert.equal(
      await vault.decrypt({ keyring: "env_1", encrypted: text, context: "NAME" }, signal),
      "hello krane",
    );
    for (const context of ["OTHER", undefined])
      await assert.rejects(
        vault.decrypt({ keyring: "env_1", encrypted: text, context }, signal),
        failsWith("undecryptable"),
      );
  });
});

describe("a value", () => {
  test("is decrypted exactly, whatever the text", async () => {
    const vault = createTestVault();
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("", "\0", "\n", "\uFEFFwith a mark", "a".repeat(valueBytesMax)),
    );
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
        async (data, name) => {
          const request = { keyring: "env_1", context: name };
          const { encrypted } = await vault.encrypt({ ...request, data }, signal);
          assert.equal(await vault.decrypt({ ...request, encrypted }, signal), data);
        },
      ),
    );
  });

  test("that cannot be encoded in UTF-8, or is too large, is rejected", async () => {
    const vault = createTestVault();
    for (const data of ["half \uD800", "a".repeat(valueBytesMax + 1)])
      await assert.rejects(vault.encrypt({ keyring: "env_1", data }, signal), failsWith("invalid"));
  });

  test("does not decrypt after a change of any bit of its message, or of its encoding", async () => {
    const vault = createTestVault();
    for (const context of [undefined, "NAME"]) {
      const { encrypted } = await vault.encrypt({ keyring: "env_1", data: "the secret", context }, signal);
      const bytes = Buffer.from(encrypted, "base64");
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const changed = Buffer.from(bytes);
        changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
        const text = changed.toString("base64");
        await assert.rejects(
          vault.decrypt({ keyring: "env_1", encrypted: text, context }, signal),
          failsWith("undecryptable"),
          `bit ${bit}`,
        );
      }
      for (const text of ["", `${encrypted} `, ` ${encrypted}`, encrypted.replace(/=+$/, ""), "%%%%"])
        if (text !== encrypted)
          await assert.rejects(
            vault.decrypt({ keyring: "env_1", encrypted: text, context }, signal),
            failsWith("undecryptable"),
          );
    }
  });

  test("with fields that the vault does not know does not decrypt", async () => {
    const vault = createTestVault();
    const { encrypted } = await vault.encrypt({ keyring: "env_1", data: "x" }, signal);
    const bytes = Buffer.from(encrypted, "base64");
    for (const [what, field] of unknownFields) {
      for (const altered of [Buffer.concat([bytes, field]), Buffer.concat([field, bytes])])
        await assert.rejects(
          vault.decrypt({ keyring: "env_1", encrypted: altered.toString("base64") }, signal),
          failsWith("undecryptable"),
          what,
        );
    }
  });

  test("with a shorter tag or nonce does not decrypt", async () => {
    const vault = createTestVault();
    const { encrypted } = await vault.encrypt({ keyring: "env_1", data: "" }, signal);
    const message = parse(encrypted);
    for (let length = 0; length < 16; length++) {
      const cut = create(EncryptedSchema, { ...message, ciphertext: message.ciphertext.subarray(0, length) });
      await assert.rejects(
        vault.decrypt({ keyring: "env_1", encrypted: render(cut) }, signal),
        failsWith("undecryptable"),
      );
    }
    for (const nonce of [message.nonce.subarray(0, 11), new Uint8Array(16), new Uint8Array()]) {
      const other = create(EncryptedSchema, { ...message, nonce });
      await assert.rejects(
        vault.decrypt({ keyring: "env_1", encrypted: render(other) }, signal),
        failsWith("undecryptable"),
      );
    }
  });

  test("does not decrypt in another keyring, even if the data key was copied there", async () => {
    const storage = createMemoryStorage();
    const vault = createTestVault({ storage });
    const { encrypted, keyId } = await vault.encrypt({ keyring: "env_a", data: "x" }, signal);
    await assert.rejects(vault.decrypt({ keyring: "env_b", encrypted }, signal), failsWith("undecryptable"));
    const stored = await storage.read(`keyring/env_a/${keyId}`, signal);
    assert.ok(stored);
    await storage.create(`keyring/env_b/${keyId}`, stored.bytes, signal);
    await assert.rejects(vault.decrypt({ keyring: "env_b", encrypted }, signal), failsWith("unusable_key"));
  });

  test("that is bound cannot be passed off as unbound, nor the other way round", async () => {
    const vault = createTestVault();
    for (const context of [undefined, "NAME"]) {
      const { encrypted } = await vault.encrypt({ keyring: "env_1", data: "x", context }, signal);
      for (const binding of [Binding.NONE, Binding.KEYRING, Binding.NAME, 3, 1000] as Binding[]) {
        if (binding === parse(encrypted).binding) continue;
        const forged = render(create(EncryptedSchema, { ...parse(encrypted), binding }));
        await assert.rejects(
          vault.decrypt({ keyring: "env_1", encrypted: forged, context: "NAME" }, signal),
          failsWith("undecryptable"),
        );
      }
    }
  });
});

describe("a stored data key", () => {
  test("with fields that the vault does not know, or in another encoding, is not used", async () => {
    const storage = createMemoryStorage();
    const { encrypted, keyId } = await createTestVault({ storage }).encrypt(
      { keyring: "env_1", data: "x" },
      signal,
    );
    const stored = await storage.read(`keyring/env_1/${keyId}`, signal);
    assert.ok(stored);
    const { id, createdAt, encrypted: wrapped } = fromBinary(EncryptedDataEncryptionKeySchema, stored.bytes);
    assert.ok(wrapped);
    const outer = toBinary(
      EncryptedDataEncryptionKeySchema,
      create(EncryptedDataEncryptionKeySchema, { id, createdAt }),
    );
    const inner = toBinary(EncryptedSchema, wrapped);
    const altered = unknownFields.flatMap(([, field]) => [
      Buffer.concat([stored.bytes, field]),
      Buffer.concat([outer, lengthDelimited(3, Buffer.concat([inner, field]))]),
    ]);
    altered.push(Buffer.concat([lengthDelimited(3, inner), outer]));
    for (const bytes of altered) {
      const copy = createMemoryStorage();
      await copy.create(`keyring/env_1/${keyId}`, bytes, signal);
      await assert.rejects(
        createTestVault({ storage: copy }).decrypt({ keyring: "env_1", encrypted }, signal),
        failsWith("unusable_key"),
        bytes.toString("hex"),
      );
    }
    const untouched = Buffer.concat([outer, lengthDelimited(3, inner)]);
    assert.deepEqual(untouched, Buffer.from(stored.bytes));
  });
});

describe("names", () => {
  const foul = [
    "",
    "..",
    ".",
    "../x",
    "a/b",
    "a\\b",
    "a\0",
    "LATEST/..",
    "ä",
    "a.",
    " a",
    "a".repeat(10_240),
  ];

  test("of a keyring that could be a path never reach the storage", async () => {
    const { storage, asked } = watched(createMemoryStorage());
    const vault = createTestVault({ storage });
    const items = new Map([["A", "x"]]);
    for (const keyring of foul) {
      const isRefused = failsWith("invalid");
      await assert.rejects(vault.encrypt({ keyring, data: "x" }, signal), isRefused);
      await assert.rejects(vault.decrypt({ keyring, encrypted: "x" }, signal), isRefused);
      await assert.rejects(vault.encryptBulk({ keyring, items }, signal), isRefused);
      await assert.rejects(vault.decryptBulk({ keyring, items }, signal), isRefused);
      await assert.rejects(vault.reEncrypt({ keyring, encrypted: "x" }, signal), isRefused);
    }
    assert.deepEqual(asked, []);
  });

  test("of a key inside a ciphertext that could be a path do not either", async () => {
    const { storage, asked } = watched(createMemoryStorage());
    const vault = createTestVault({ storage });
    const template = parse((await vault.encrypt({ keyring: "env_1", data: "x" }, signal)).encrypted);
    asked.length = 0;
    for (const encryptionKeyId of [
      ...foul,
      "LATEST",
      "dek_",
      "../env_2/dek_12345678",
      "dek_1234567\0",
      "env_1-dek_12345678",
    ]) {
      const encrypted = render(create(EncryptedSchema, { ...template, encryptionKeyId }));
      await assert.rejects(
        vault.decrypt({ keyring: "env_1", encrypted }, signal),
        failsWith("undecryptable"),
      );
    }
    assert.deepEqual(asked, []);
  });

  test("that are empty are rejected, so that a caller that lost the name notices", async () => {
    const vault = createTestVault();
    const items = new Map([["", "x"]]);
    await assert.rejects(
      vault.encrypt({ keyring: "env_1", data: "x", context: "" }, signal),
      failsWith("invalid"),
    );
    await assert.rejects(
      vault.encryptBulk({ keyring: "env_1", items, bindItemNames: true }, signal),
      failsWith("invalid"),
    );
    assert.equal((await vault.encryptBulk({ keyring: "env_1", items }, signal)).size, 1);
  });
});

describe("many values at once", () => {
  test("are all decrypted or none, and the bad one is named without its value", async () => {
    const vault = createTestVault();
    const plain = new Map(Array.from({ length: 50 }, (_, index) => [`NAME_${index}`, `secret-${index}`]));
    const closed = await vault.encryptBulk({ keyring: "env_1", items: plain, bindItemNames: true }, signal);
    const items = new Map([...closed].map(([name, { encrypted }]) => [name, encrypted]));
    assert.deepEqual(await vault.decryptBulk({ keyring: "env_1", items }, signal), plain);
    const swapped = new Map(items)
      .set("NAME_7", items.get("NAME_8") ?? "")
      .set("NAME_8", items.get("NAME_7") ?? "");
    await assert.rejects(vault.decryptBulk({ keyring: "env_1", items: swapped }, signal), (error) => {
      assert.ok(error instanceof VaultError && error.code === "undecryptable");
      assert.match(error.message, /NAME_7/);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  });

  test("decrypt in an older version too, as whoever changes a blob can put it back", async () => {
    const vault = createTestVault();
    const close = (value: string) =>
      vault.encryptBulk({ keyring: "env_1", items: new Map([["A", value]]), bindItemNames: true }, signal);
    const [older] = [await close("old"), await close("new")];
    const items = new Map([["A", older.get("A")?.encrypted ?? ""]]);
    assert.deepEqual([...(await vault.decryptBulk({ keyring: "env_1", items }, signal))], [["A", "old"]]);
  });

  test("are not bound to a name unless requested", async () => {
    const vault = createTestVault();
    const closed = await vault.encryptBulk({ keyring: "env_1", items: new Map([["row 1", "x"]]) }, signal);
    const items = new Map([["OTHER", closed.get("row 1")?.encrypted ?? ""]]);
    assert.deepEqual([...(await vault.decryptBulk({ keyring: "env_1", items }, signal))], [["OTHER", "x"]]);
  });
});
