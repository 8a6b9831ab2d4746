// Vaults for tests: any number of them on one storage, as processes would be.
import type { Clock } from "../../src/concurrency/clock.ts";
import { Secret } from "../../src/config/secret.ts";
import type { SecretSource } from "../../src/config/secret-source.ts";
import { createEmbeddedVault, type EmbeddedVaultOptions } from "../../src/vault/embedded-vault.ts";
import { createMasterKeySource, type MasterKeySource } from "../../src/vault/master-keys.ts";
import type { VaultStorage } from "../../src/vault/storage/storage.ts";
import type { OpenVault } from "../../src/vault/vault.ts";
import { FakeClock } from "./fake-clock.ts";

export function secretOf(text: string): SecretSource {
  const secret = new Secret(text);
  return { current: async () => secret, refresh: () => undefined };
}

export function masterKeysOf(...keys: readonly string[]): MasterKeySource {
  return createMasterKeySource(secretOf(keys.join("\n")));
}

export interface TestVaultOptions extends Partial<EmbeddedVaultOptions> {
  readonly storage: VaultStorage;
  readonly keys: readonly string[];
  readonly clock?: Clock;
}

export function createTestVault({ storage, keys, clock, ...options }: TestVaultOptions): OpenVault {
  const deps = { storage, masterKeys: masterKeysOf(...keys), clock: clock ?? new FakeClock() };
  return createEmbeddedVault({ format: "krane", ...options }, deps);
}

/** The storage as it is seen by a process that is killed before its call with this number; reads and writes count, `before` sees each. */
export function mortalStorage(
  storage: VaultStorage,
  callsMax: number,
  before: (call: string) => Promise<void> = async () => undefined,
): VaultStorage & { readonly calls: number } {
  let calls = 0;
  const step = async <T>(call: string, work: () => Promise<T>): Promise<T> => {
    await before(call);
    calls += 1;
    if (calls > callsMax) throw new Error("killed");
    return work();
  };
  return {
    get calls() {
      return calls;
    },
    read: (objectKey, signal) => step("read", () => storage.read(objectKey, signal)),
    create: (objectKey, bytes, signal) => step("create", () => storage.create(objectKey, bytes, signal)),
    replace: (objectKey, bytes, version, signal) =>
      step("replace", () => storage.replace(objectKey, bytes, version, signal)),
    async *list(prefix, signal) {
      await step("list", async () => undefined);
      yield* storage.list(prefix, signal);
    },
    close: () => storage.close(),
  };
}
