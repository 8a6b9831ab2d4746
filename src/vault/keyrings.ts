// Loads, caches and creates the data keys of keyrings. A keyring's first key is created on first use.
//
// - A data key is used for encryption only after it is stored under its own id. `LATEST` alone is not enough: once it is
//   replaced, nothing encrypted with that key could be decrypted.
// - A new key is written under its own id first, then as `LATEST`, both only if they do not exist. If several processes
//   create a keyring's first key, one wins and the others use it. Their own keys remain as unused objects.
// - A crash between the two writes leaves at most such an unused object.
import { DeadlineError } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
import {
  type DataKey,
  generateDataKey,
  parseWrappedDataKey,
  type WriteFormat,
  wrapDataKey,
} from "./data-key.ts";
import { latest, objectKeyOf } from "./identifiers.ts";
import { KeyCache } from "./key-cache.ts";
import type { MasterKeySource } from "./master-keys.ts";
import type { StoredObject, VaultStorage } from "./storage/storage.ts";
import { VaultError } from "./vault-error.ts";

export interface KeyringsOptions {
  readonly format: WriteFormat;
  /** Data keys in memory at the same time. Default 10,000. */
  readonly keysMax?: number;
  /**
   * How often this process uses one data key before it creates a new one. With random nonces a key is safe for 2^32
   * values; the default of 2^28 leaves room for sixteen processes.
   */
  readonly encryptionsMax?: number;
}

export interface KeyringsDeps {
  readonly storage: VaultStorage;
  readonly masterKeys: MasterKeySource;
  readonly clock: Clock;
}

const keyAgeMaxMs = 60 * 60_000;
// Another process may have created a newer key. Until this time is over the older one is used, which is as good.
const latestAgeMaxMs = 60_000;
const loadTimeoutMs = 10_000;
const createTriesMax = 5;

export class Keyrings {
  private readonly format: WriteFormat;
  private readonly encryptionsMax: number;
  private readonly keysMax: number;
  private readonly deps: KeyringsDeps;
  private readonly byIds: KeyCache<DataKey>;
  private readonly newests: KeyCache<DataKey>;
  // Uses by key id, least recently used first. Separate from the caches, because a key that is loaded again keeps its
  // count.
  private readonly uses = new Map<string, number>();

  constructor(options: KeyringsOptions, deps: KeyringsDeps) {
    this.format = options.format;
    this.encryptionsMax = options.encryptionsMax ?? 2 ** 28;
    this.deps = deps;
    this.keysMax = options.keysMax ?? 10_000;
    const entriesMax = this.keysMax;
    this.byIds = new KeyCache({ entriesMax, ageMaxMs: keyAgeMaxMs, loadTimeoutMs }, deps.clock);
    this.newests = new KeyCache({ entriesMax, ageMaxMs: latestAgeMaxMs, loadTimeoutMs }, deps.clock);
  }

  /** The data key to encrypt with; created if the keyring has none. Every call counts as one use. */
  async newest(keyring: string, signal: AbortSignal): Promise<DataKey> {
    let dataKey = this.newests.peek(keyring);
    if (dataKey === undefined || this.isSpent(dataKey)) {
      this.newests.forget(keyring);
      const load = (limited: AbortSignal) => this.loadNewest(keyring, limited);
      dataKey = await inTime(keyring, this.newests.get(keyring, load, signal));
    }
    if (dataKey === undefined) throw new TypeError("the keyring has no newest key");
    this.countUse(dataKey);
    return dataKey;
  }

  /** Undefined if there is no such key. */
  async byId(keyring: string, id: string, signal: AbortSignal): Promise<DataKey | undefined> {
    const name = `${keyring}/${id}`;
    return (
      this.byIds.peek(name) ??
      inTime(
        keyring,
        this.byIds.get(name, (limited) => this.loadById(keyring, id, limited), signal),
      )
    );
  }

  /** Makes the next newest() read the storage. */
  forgetNewest(keyring: string): void {
    this.newests.forget(keyring);
  }

  close(): void {
    const closed = new VaultError("unavailable", "the vault was closed");
    this.byIds.close(closed);
    this.newests.close(closed);
  }

  private async loadById(keyring: string, id: string, signal: AbortSignal): Promise<DataKey | undefined> {
    const objectKey = objectKeyOf(keyring, id);
    const stored = await this.deps.storage.read(objectKey, signal);
    if (stored === undefined) return undefined;
    const dataKey = await this.unwrap(stored, keyring, objectKey, signal);
    if (dataKey.id === id) return dataKey;
    throw new VaultError("unusable_key", `${objectKey}: contains another key, ${dataKey.id}`);
  }

  private async loadNewest(keyring: string, signal: AbortSignal): Promise<DataKey> {
    for (let tries = 0; tries < createTriesMax; tries++) {
      const stored = await this.deps.storage.read(objectKeyOf(keyring, latest), signal);
      const dataKey = stored && (await this.adopt(keyring, stored, signal));
      if (dataKey !== undefined && !this.isSpent(dataKey)) return dataKey;
      await this.makeNewest(keyring, stored, signal);
    }
    const reason = `keyring ${keyring}: cannot read or create its newest key`;
    throw new VaultError("unavailable", reason);
  }

  private isSpent({ id }: DataKey): boolean {
    return (this.uses.get(id) ?? 0) >= this.encryptionsMax;
  }

  private countUse({ id }: DataKey): void {
    const count = (this.uses.get(id) ?? 0) + 1;
    this.uses.delete(id);
    this.uses.set(id, count);
    if (this.uses.size <= this.keysMax) return;
    const [oldest] = this.uses.keys();
    if (oldest !== undefined) this.uses.delete(oldest);
  }

  /** The caller reads the result from the storage, because another process may have been first. */
  private async makeNewest(
    keyring: string,
    replaced: StoredObject | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { storage, masterKeys, clock } = this.deps;
    const wallMs = clock.wallMs();
    const dataKey = generateDataKey(wallMs);
    const { newest } = await masterKeys.current(signal);
    const bytes = wrapDataKey(dataKey, newest, { keyring, format: this.format, wallMs });
    await storage.create(objectKeyOf(keyring, dataKey.id), bytes, signal);
    const objectKey = objectKeyOf(keyring, latest);
    if (replaced === undefined) await storage.create(objectKey, bytes, signal);
    else await storage.replace(objectKey, bytes, replaced.version, signal);
  }

  /** Ensures that the key in `LATEST` is also stored under its own id. */
  private async adopt(keyring: string, stored: StoredObject, signal: AbortSignal): Promise<DataKey> {
    const fromLatest = await this.unwrap(stored, keyring, objectKeyOf(keyring, latest), signal);
    let dataKey = await this.byId(keyring, fromLatest.id, signal);
    if (dataKey === undefined) {
      await this.deps.storage.create(objectKeyOf(keyring, fromLatest.id), stored.bytes, signal);
      dataKey = await this.byId(keyring, fromLatest.id, signal);
    }
    if (dataKey?.key.equals(fromLatest.key)) return dataKey;
    throw new VaultError(
      "unusable_key",
      `${objectKeyOf(keyring, fromLatest.id)}: differs from the key with this id in ${latest}`,
    );
  }

  private async unwrap(
    stored: StoredObject,
    keyring: string,
    objectKey: string,
    signal: AbortSignal,
  ): Promise<DataKey> {
    const { masterKeys } = this.deps;
    const wrapped = parseWrappedDataKey(stored.bytes, keyring, objectKey);
    const dataKey = wrapped.unwrap(await masterKeys.current(signal));
    if (dataKey !== undefined) return dataKey;
    // The file may have a newer list of master keys.
    masterKeys.refresh();
    const second = wrapped.unwrap(await masterKeys.current(signal));
    if (second !== undefined) return second;
    throw new VaultError(
      "unusable_key",
      `${objectKey}: is wrapped by master key ${JSON.stringify(wrapped.masterKeyId.slice(0, 80))}, which is not configured; add it to vault.master_keys`,
    );
  }
}

async function inTime<T>(keyring: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof DeadlineError)) throw error;
    const message = `keyring ${keyring}: the storage did not respond within ${error.timeoutMs} ms`;
    throw new VaultError("unavailable", message, { cause: error });
  }
}
