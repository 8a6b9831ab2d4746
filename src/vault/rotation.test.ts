import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createTestVault, masterKeysOf, mortalStorage } from "../../test/support/vault-fixture.ts";
import { createSystemClock } from "../concurrency/clock.ts";
import { generateMasterKey } from "./master-keys.ts";
import { rotateDataKeys } from "./rotation.ts";
import { createMemoryStorage } from "./storage/memory-storage.ts";
import type { VaultStorage } from "./storage/storage.ts";
import type { EncryptedValue } from "./vault.ts";

const { signal } = new AbortController();
const [oldKey, newKey] = [generateMasterKey(0), generateMasterKey(0)];
const both = [oldKey, newKey];
const clock = createSystemClock();

interface Sample {
  readonly keyring: string;
  readonly data: string;
  readonly value: EncryptedValue;
}

/** Some keyrings with two data keys each, all wrapped by the old master key. */
async function fill(storage: VaultStorage, format: "krane" | "original" = "krane"): Promise<Sample[]> {
  const vault = createTestVault({ storage, keys: [oldKey], encryptionsMax: 2, format });
  const samples: Sample[] = [];
  for (const keyring of ["env_1", "env_2", "env_3"])
    for (const data of ["a", "b", "c"])
      samples.push({ keyring, data, value: await vault.encrypt({ keyring, data }, signal) });
  return samples;
}

/** A new process with nothing cached: it sees only what is stored. */
async function assertReadable(storage: VaultStorage, keys: readonly string[], samples: readonly Sample[]) {
  const vault = createTestVault({ storage, keys });
  for (const { keyring, data, value } of samples)
    assert.equal(await vault.decrypt({ keyring, encrypted: value.encrypted }, signal), data);
}

const rotate = (storage: VaultStorage, keys: readonly string[] = both) =>
  rotateDataKeys({ format: "krane" }, { storage, masterKeys: masterKeysOf(...keys), clock }, signal);

describe("a rotation", () => {
  test("leaves everything readable with the new master key alone, for reading and for writing", async () => {
    for (const format of ["krane", "original"] as const) {
      const storage = createMemoryStorage();
      const samples = await fill(storage, format);
      const { objects, rewrapped, failed } = await rotate(storage);
      assert.deepEqual({ objects, rewrapped, failed }, { objects: 9, rewrapped: 9, failed: 0 });
      await assertReadable(storage, [newKey], samples);
      const vault = createTestVault({ storage, keys: [newKey] });
      const { encrypted, keyId } = await vault.encrypt({ keyring: "env_1", data: "later" }, signal);
      assert.ok(
        samples.some(({ value }) => value.keyId === keyId),
        "the newest data key is used on",
      );
      assert.equal(await vault.decrypt({ keyring: "env_1", encrypted }, signal), "later");
    }
  });

  test("that has nothing to do writes nothing", async () => {
    const storage = createMemoryStorage();
    await fill(storage);
    await rotate(storage);
    const calls: string[] = [];
    const watched = mortalStorage(storage, Number.POSITIVE_INFINITY, async (call) => void calls.push(call));
    assert.equal((await rotate(watched)).rewrapped, 0);
    assert.deepEqual(new Set(calls), new Set(["list", "read"]));
  });

  test("that is killed at any step while others read and write loses nothing, and continues when run again", async () => {
    for (let calls = 0; ; calls++) {
      const storage = createMemoryStorage();
      const samples = await fill(storage);
      const running = createTestVault({ storage, keys: both });
      const written: Sample[] = [];
      // At every step of the rotation: a process that has been running, one that has just
      // started, and one that writes.
      const load = async () => {
        await assertReadable(storage, both, samples.slice(calls % 9, (calls % 9) + 1));
        const keyring = `env_${1 + (written.length % 4)}`;
        const value = await running.encrypt({ keyring, data: "under load" }, signal);
        written.push({ keyring, data: "under load", value });
        await running.decrypt({ keyring, encrypted: value.encrypted }, signal);
      };
      const outcome = await rotate(mortalStorage(storage, calls, load)).catch(() => undefined);
      await assertReadable(storage, both, [...samples, ...written]);
      if (outcome === undefined) continue;
      assert.ok(calls > 25, "every step before was tried");
      assert.equal(outcome.failed, 0);
      await assertReadable(storage, [newKey], [...samples, ...written]);
      return;
    }
  });

  test("finishes what a killed one started", async () => {
    const storage = createMemoryStorage();
    const samples = await fill(storage);
    await assert.rejects(rotate(mortalStorage(storage, 14)));
    const { rewrapped, failed } = await rotate(storage);
    assert.ok(rewrapped > 0 && rewrapped < 9, `${rewrapped} were left`);
    assert.equal(failed, 0);
    await assertReadable(storage, [newKey], samples);
  });

  test("retries an object that was changed concurrently", async () => {
    const storage = createMemoryStorage();
    const samples = await fill(storage);
    const results = await Promise.all([rotate(storage), rotate(storage), rotate(storage)]);
    assert.deepEqual(
      results.map(({ failed }) => failed),
      [0, 0, 0],
    );
    await assertReadable(storage, [newKey], samples);
  });

  test("rewraps what a vault without the new key wrote meanwhile", async () => {
    const storage = createMemoryStorage();
    const samples = await fill(storage);
    const unaware = createTestVault({ storage, keys: [oldKey] });
    let late: Sample | undefined;
    const disturbed = mortalStorage(storage, Number.POSITIVE_INFINITY, async (call) => {
      if (call !== "replace" || late !== undefined) return;
      late = {
        keyring: "env_9",
        data: "late",
        value: await unaware.encrypt({ keyring: "env_9", data: "late" }, signal),
      };
    });
    assert.equal((await rotate(disturbed)).failed, 0);
    assert.ok(late);
    await assertReadable(storage, [newKey], [...samples, late]);
  });

  test("counts and names what it cannot unwrap, and continues with the rest", async () => {
    const storage = createMemoryStorage();
    const samples = await fill(storage);
    const stranger = createTestVault({ storage, keys: [generateMasterKey(0)] });
    await stranger.encrypt({ keyring: "env_lost", data: "x" }, signal);
    await storage.create("keyring/env_broken/dek_12345678", Uint8Array.of(1, 2, 3), signal);
    await storage.create("keyring/not ours.txt", Uint8Array.of(1), signal);
    const { failed, failures, rewrapped, skipped } = await rotate(storage);
    assert.equal(failed, 3);
    assert.equal(skipped, 1);
    assert.equal(rewrapped, 9);
    assert.match(
      failures.map(({ message }) => message).join("\n"),
      /env_lost\/LATEST: is wrapped by master key/,
    );
    assert.match(failures.map(({ message }) => message).join("\n"), /env_broken\/dek_12345678: is damaged/);
    await assertReadable(storage, [newKey], samples);
  });
});
