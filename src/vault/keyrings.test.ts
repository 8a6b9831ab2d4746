import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createTestVault, mortalStorage } from "../../test/support/vault-fixture.ts";
import { Secret } from "../config/secret.ts";
import { createEmbeddedVault } from "./embedded-vault.ts";
import { createMasterKeySource, generateMasterKey } from "./master-keys.ts";
import { createMemoryStorage } from "./storage/memory-storage.ts";
import type { VaultStorage } from "./storage/storage.ts";
import { VaultError } from "./vault-error.ts";

const { signal } = new AbortController();
const masterKey = generateMasterKey(0);
const keyring = "env_1";

async function objectsOf(storage: VaultStorage): Promise<string[]> {
  const names: string[] = [];
  for await (const name of storage.list("keyring/", signal)) names.push(name);
  return names.sort();
}

/** A storage whose calls end in an order that a seed decides. */
function shuffled(storage: VaultStorage, seed: number): VaultStorage {
  let state = seed;
  return mortalStorage(storage, Number.POSITIVE_INFINITY, async () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    for (let turns = state % 7; turns > 0; turns--) await null;
  });
}

describe("the first key of a keyring", () => {
  test("is one even if many processes create it at once, and all of them can decrypt what any encrypted", async () => {
    for (let seed = 1; seed <= 50; seed++) {
      const storage = createMemoryStorage();
      const vaults = Array.from({ length: 5 }, (_, index) =>
        createTestVault({ storage: shuffled(storage, seed * 31 + index), keys: [masterKey] }),
      );
      const values = await Promise.all(
        vaults.flatMap((vault) => [1, 2, 3].map(() => vault.encrypt({ keyring, data: "x" }, signal))),
      );
      assert.equal(new Set(values.map(({ keyId }) => keyId)).size, 1, `seed ${seed}`);
      for (const vault of [...vaults, createTestVault({ storage, keys: [masterKey] })])
        for (const { encrypted } of values)
          assert.equal(await vault.decrypt({ keyring, encrypted }, signal), "x");
    }
  });

  test("is created once for many concurrent callers of one process", async () => {
    const storage = createMemoryStorage();
    const vault = createTestVault({ storage, keys: [masterKey] });
    await Promise.all(Array.from({ length: 100 }, () => vault.encrypt({ keyring, data: "x" }, signal)));
    assert.equal((await objectsOf(storage)).length, 2);
  });

  test("is complete or absent after a crash at any step, and the next process continues", async () => {
    for (let calls = 0; ; calls++) {
      const storage = createMemoryStorage();
      const killed = createTestVault({ storage: mortalStorage(storage, calls), keys: [masterKey] });
      const outcome = await killed
        .encrypt({ keyring, data: "from the first" }, signal)
        .catch(() => undefined);
      // An original vault on the same storage can find a key only by its id.
      const names = await objectsOf(storage);
      assert.ok(!names.includes(`keyring/${keyring}/LATEST`) || names.length === 2, names.join());
      const next = createTestVault({ storage, keys: [masterKey] });
      const { encrypted } = await next.encrypt({ keyring, data: "x" }, signal);
      assert.equal(await next.decrypt({ keyring, encrypted }, signal), "x");
      if (outcome === undefined) continue;
      assert.equal(await next.decrypt({ keyring, encrypted: outcome.encrypted }, signal), "from the first");
      assert.ok(calls >= 3, "every step before was tried");
      return;
    }
  });

  test("that is stored only as LATEST gets its own object before it is used", async () => {
    const storage = createMemoryStorage();
    const { keyId } = await createTestVault({ storage, keys: [masterKey] }).encrypt(
      { keyring, data: "x" },
      signal,
    );
    const latest = await storage.read(`keyring/${keyring}/LATEST`, signal);
    const other = createMemoryStorage();
    await other.create(`keyring/${keyring}/LATEST`, latest?.bytes ?? new Uint8Array(), signal);
    const value = await createTestVault({ storage: other, keys: [masterKey] }).encrypt(
      { keyring, data: "x" },
      signal,
    );
    assert.equal(value.keyId, keyId);
    assert.deepEqual(await objectsOf(other), [`keyring/${keyring}/LATEST`, `keyring/${keyring}/${keyId}`]);
  });
});

describe("a data key", () => {
  test("is replaced before it has been used too often, and its values stay readable", async () => {
    const storage = createMemoryStorage();
    const clock = new FakeClock();
    const vault = createTestVault({ storage, keys: [masterKey], encryptionsMax: 3, clock });
    const values = [];
    for (let count = 0; count < 10; count++) {
      values.push(await vault.encrypt({ keyring, data: `${count}` }, signal));
      // Long enough for the key to be dropped from the cache and loaded again.
      await clock.advance(count % 2 === 0 ? 7_200_000 : 0);
    }
    const perKey = new Map<string, number>();
    for (const { keyId } of values) perKey.set(keyId, (perKey.get(keyId) ?? 0) + 1);
    assert.deepEqual([...perKey.values()], [3, 3, 3, 1]);
    for (const [count, { encrypted }] of values.entries())
      assert.equal(await vault.decrypt({ keyring, encrypted }, signal), `${count}`);
  });

  test("of another process is used once the cached older one has expired", async () => {
    const clock = new FakeClock();
    const storage = createMemoryStorage();
    const one = createTestVault({ storage, keys: [masterKey], clock });
    const other = createTestVault({ storage, keys: [masterKey], clock, encryptionsMax: 1 });
    const first = await one.encrypt({ keyring, data: "x" }, signal);
    await other.encrypt({ keyring, data: "x" }, signal);
    const newer = await other.encrypt({ keyring, data: "x" }, signal);
    assert.notEqual(newer.keyId, first.keyId);
    assert.equal((await one.encrypt({ keyring, data: "x" }, signal)).keyId, first.keyId);
    await clock.advance(60_000);
    assert.equal((await one.encrypt({ keyring, data: "x" }, signal)).keyId, newer.keyId);
  });

  test("is read from the storage once, and again only when it has expired from the cache", async () => {
    const clock = new FakeClock();
    const storage = createMemoryStorage();
    const { encrypted } = await createTestVault({ storage, keys: [masterKey] }).encrypt(
      { keyring, data: "x" },
      signal,
    );
    const counted = mortalStorage(storage, Number.POSITIVE_INFINITY);
    const vault = createTestVault({ storage: counted, keys: [masterKey], clock });
    const many = () =>
      Promise.all(Array.from({ length: 50 }, () => vault.decrypt({ keyring, encrypted }, signal)));
    await many();
    await many();
    assert.equal(counted.calls, 1);
    await clock.advance(3_600_000);
    await many();
    assert.equal(counted.calls, 2);
  });

  test("wrapped by a master key that was just added to the file is unwrapped", async () => {
    const storage = createMemoryStorage();
    const newer = generateMasterKey(0);
    const { encrypted } = await createTestVault({ storage, keys: [masterKey, newer] }).encrypt(
      { keyring, data: "x" },
      signal,
    );
    // The file is read again only from time to time, or after refresh().
    let held = new Secret(masterKey);
    const masterKeys = createMasterKeySource({
      current: async () => held,
      refresh() {
        held = new Secret(`${masterKey}\n${newer}`);
      },
    });
    const clock = new FakeClock();
    const vault = createEmbeddedVault({ format: "krane" }, { storage, masterKeys, clock });
    assert.equal(await vault.decrypt({ keyring, encrypted }, signal), "x");
  });

  test("wrapped by a master key that is not configured gives an error with its id and the remedy", async () => {
    const storage = createMemoryStorage();
    const { encrypted } = await createTestVault({ storage, keys: [masterKey] }).encrypt(
      { keyring, data: "x" },
      signal,
    );
    const vault = createTestVault({ storage, keys: [generateMasterKey(0)] });
    await assert.rejects(
      vault.decrypt({ keyring, encrypted }, signal),
      (error) =>
        error instanceof VaultError &&
        error.code === "unusable_key" &&
        /kek_\w+", which is not configured; add it to vault\.master_keys/.test(error.message),
    );
  });
});

describe("a storage", () => {
  test("that hangs fails every caller in time, and a later call tries again", async () => {
    const clock = new FakeClock();
    const storage = createMemoryStorage();
    const { encrypted } = await createTestVault({ storage, keys: [masterKey] }).encrypt(
      { keyring, data: "x" },
      signal,
    );
    let hangs = true;
    const slow = mortalStorage(storage, Number.POSITIVE_INFINITY, () =>
      hangs ? new Promise<void>(() => undefined) : Promise.resolve(),
    );
    const vault = createTestVault({ storage: slow, keys: [masterKey], clock });
    const calls = [1, 2].map(() => vault.decrypt({ keyring, encrypted }, signal));
    const ended = Promise.allSettled(calls);
    await clock.advance(10_000);
    for (const outcome of await ended)
      assert.ok(outcome.status === "rejected" && (outcome.reason as VaultError).code === "unavailable");
    hangs = false;
    assert.equal(await vault.decrypt({ keyring, encrypted }, signal), "x");
    await vault.close();
    assert.equal(clock.timerCount, 0);
  });

  test("does not keep a caller that aborted, and the others get their result", async () => {
    const storage = createMemoryStorage();
    const { encrypted } = await createTestVault({ storage, keys: [masterKey] }).encrypt(
      { keyring, data: "x" },
      signal,
    );
    let openGate: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      openGate = resolve;
    });
    const slow = mortalStorage(storage, Number.POSITIVE_INFINITY, () => gate);
    const vault = createTestVault({ storage: slow, keys: [masterKey] });
    const leaving = new AbortController();
    const left = vault.decrypt({ keyring, encrypted }, leaving.signal);
    const stays = vault.decrypt({ keyring, encrypted }, signal);
    const reason = new Error("gone");
    leaving.abort(reason);
    await assert.rejects(left, reason);
    openGate();
    assert.equal(await stays, "x");
  });
});
