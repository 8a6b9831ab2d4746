// What every storage of the vault promises, as one suite: memory, disk and S3 pass the
// same. `open` gives an empty storage; opening it twice with the same place gives two
// processes' view of it.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { generateMasterKey } from "../../../src/vault/master-keys.ts";
import { objectBytesMax, type VaultStorage } from "../../../src/vault/storage/storage.ts";
import { VaultError } from "../../../src/vault/vault-error.ts";
import { createTestVault } from "../../support/vault-fixture.ts";

export interface StoragePlace {
  /** Another look at the same objects. */
  open(): VaultStorage;
}

export interface ContractOptions {
  readonly name: string;
  /** Why it cannot run here, if it cannot. */
  readonly skip?: string | undefined;
  makePlace(t: TestContext): Promise<StoragePlace>;
}

const { signal } = new AbortController();
const keyA = "keyring/env_a/dek_aaaaaaaa";
const keyB = "keyring/env_b/LATEST";
const bytesOf = (text: string) => Uint8Array.from(Buffer.from(text));
const textOf = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString();

async function listed(storage: VaultStorage, prefix: string): Promise<string[]> {
  const names: string[] = [];
  for await (const name of storage.list(prefix, signal)) names.push(name);
  return names.sort();
}

type Define = (title: string, run: (place: StoragePlace) => Promise<void>) => void;

export function defineStorageContract({ name, skip, makePlace }: ContractOptions): void {
  const define: Define = (title, run) =>
    void test(`${name}: ${title}`, { skip: skip ?? false }, async (t) => run(await makePlace(t)));
  defineWriting(define);
  defineReading(define);
}

function defineWriting(define: Define): void {
  define("what is not there is not there, and lists as nothing", async (place) => {
    const storage = place.open();
    assert.equal(await storage.read(keyA, signal), undefined);
    assert.deepEqual(await listed(storage, "keyring/"), []);
    await storage.close();
  });

  define("what was created is read by everybody, byte for byte", async (place) => {
    const [one, other] = [place.open(), place.open()];
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
    assert.equal(await one.create(keyA, bytes, signal), "created");
    assert.deepEqual((await other.read(keyA, signal))?.bytes, bytes);
    assert.equal(await one.read(keyB, signal), undefined);
  });

  define("creating never overwrites", async (place) => {
    const [one, other] = [place.open(), place.open()];
    assert.equal(await one.create(keyA, bytesOf("first"), signal), "created");
    assert.equal(await other.create(keyA, bytesOf("second"), signal), "exists");
    assert.equal(textOf((await other.read(keyA, signal))?.bytes), "first");
  });

  define("of many that create the same object at the same time, one does", async (place) => {
    const storages = Array.from({ length: 10 }, () => place.open());
    const outcomes = await Promise.all(
      storages.map((storage, index) => storage.create(keyA, bytesOf(`from ${index}`), signal)),
    );
    assert.deepEqual(
      outcomes.filter((outcome) => outcome === "created"),
      ["created"],
    );
    const winner = outcomes.indexOf("created");
    assert.equal(textOf((await place.open().read(keyA, signal))?.bytes), `from ${winner}`);
  });

  define("vaults that make the first key of a keyring at the same time end with one", async (place) => {
    const keys = [generateMasterKey(0)];
    const vaults = Array.from({ length: 5 }, () => createTestVault({ storage: place.open(), keys }));
    const values = await Promise.all(
      vaults.map((vault) => vault.encrypt({ keyring: "env_a", data: "x" }, signal)),
    );
    assert.equal(new Set(values.map(({ keyId }) => keyId)).size, 1);
    const later = createTestVault({ storage: place.open(), keys });
    for (const { encrypted } of values)
      assert.equal(await later.decrypt({ keyring: "env_a", encrypted }, signal), "x");
  });

  define("replacing needs the version that is there", async (place) => {
    const [one, other] = [place.open(), place.open()];
    assert.equal(await one.replace(keyA, bytesOf("x"), '"no-such-version"', signal), "changed");
    assert.equal(await one.read(keyA, signal), undefined);
    await one.create(keyA, bytesOf("first"), signal);
    const first = await one.read(keyA, signal);
    assert.ok(first);
    assert.equal(await other.replace(keyA, bytesOf("second"), first.version, signal), "replaced");
    assert.equal(await one.replace(keyA, bytesOf("third"), first.version, signal), "changed");
    const second = await one.read(keyA, signal);
    assert.equal(textOf(second?.bytes), "second");
    assert.notEqual(second?.version, first.version);
  });

  define("a reader sees an object whole, also while it is being replaced", async (place) => {
    const [writer, reader] = [place.open(), place.open()];
    const versions = Array.from({ length: 20 }, (_, index) => String.fromCharCode(97 + index).repeat(4_000));
    await writer.create(keyA, bytesOf(versions[0] ?? ""), signal);
    let done = false;
    const reading = (async () => {
      const seen = new Set<string>();
      while (!done) seen.add(textOf((await reader.read(keyA, signal))?.bytes) ?? "nothing");
      return seen;
    })();
    for (const text of versions.slice(1)) {
      const current = await writer.read(keyA, signal);
      assert.equal(await writer.replace(keyA, bytesOf(text), current?.version ?? "", signal), "replaced");
    }
    done = true;
    for (const text of await reading)
      assert.ok(versions.includes(text), `half an object: ${text.slice(0, 9)}`);
  });
}

function defineReading(define: Define): void {
  define("lists by prefix, every object once", async (place) => {
    const storage = place.open();
    const names = Array.from(
      { length: 25 },
      (_, index) => `keyring/env_${index % 5}/dek_${String(index).padStart(8, "0")}`,
    );
    for (const objectKey of names) await storage.create(objectKey, bytesOf(objectKey), signal);
    assert.deepEqual(await listed(storage, "keyring/"), [...names].sort());
    assert.deepEqual(
      await listed(storage, "keyring/env_3/"),
      names.filter((each) => each.startsWith("keyring/env_3/")).sort(),
    );
    assert.deepEqual(await listed(storage, "other/"), []);
  });

  define("names that differ in case only are two objects", async (place) => {
    const storage = place.open();
    assert.equal(await storage.create("keyring/env_A/LATEST", bytesOf("upper"), signal), "created");
    assert.equal(await storage.create("keyring/env_a/LATEST", bytesOf("lower"), signal), "created");
    assert.equal(textOf((await storage.read("keyring/env_A/LATEST", signal))?.bytes), "upper");
  });

  define("an abort ends a call with its own reason", async (place) => {
    const storage = place.open();
    const reason = new Error("enough");
    const aborted = AbortSignal.abort(reason);
    await assert.rejects(storage.read(keyA, aborted), reason);
    await assert.rejects(storage.create(keyA, bytesOf("x"), aborted), reason);
    await assert.rejects(storage.replace(keyA, bytesOf("x"), "1", aborted), reason);
    assert.equal(await storage.read(keyA, signal), undefined);
  });

  define("an object that is too large to be a data key is not read into memory", async (place) => {
    const storage = place.open();
    await storage.create(keyA, new Uint8Array(objectBytesMax + 1), signal);
    await assert.rejects(
      storage.read(keyA, signal),
      (error) => error instanceof VaultError && error.code === "unavailable",
    );
  });
}
