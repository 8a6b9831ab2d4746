// Rewraps every data key with the newest master key, so that the older master keys can be removed. The data keys
// themselves do not change, and so the encrypted values do not either.
//
// - Each object is replaced in one step by the same data key, wrapped by the newest master key. After an interruption,
//   everything is readable with the old and new keys together; run again, it continues with the rest.
// - An object that was changed concurrently is read again.
// - It is complete only when a whole pass found nothing to do, because vaults that do not have the newest key yet may have
//   written with an older one meanwhile.

import { withTimeout } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
import { parseWrappedDataKey, type WriteFormat, wrapDataKey } from "./data-key.ts";
import { keyringsPrefix, parseObjectKey } from "./identifiers.ts";
import type { MasterKeySource, MasterKeys } from "./master-keys.ts";
import type { VaultStorage } from "./storage/storage.ts";
import { VaultError } from "./vault-error.ts";

export interface RotationProgress {
  readonly pass: number;
  /** Objects read in this pass. */
  readonly seen: number;
  /** Objects rewrapped so far, in all passes. */
  readonly rewrapped: number;
}

export interface RotationResult {
  readonly masterKeyId: string;
  readonly objects: number;
  readonly rewrapped: number;
  /** Objects that could not be rewrapped. As long as there is one, no master key may be removed. */
  readonly failed: number;
  /** Why, for the first few of them. */
  readonly failures: readonly VaultError[];
  /** Objects with names that krane does not use; it is unknown which master key they need. */
  readonly skipped: number;
}

export interface RotationDeps {
  readonly storage: VaultStorage;
  readonly masterKeys: MasterKeySource;
  readonly clock: Clock;
  onProgress?(progress: RotationProgress): void;
}

export interface RotationOptions {
  readonly format: WriteFormat;
  /** Objects processed at the same time. Default 16. */
  readonly concurrency?: number;
}

const passesMax = 10;
const triesMax = 5;
const shownFailuresMax = 5;
const stepTimeoutMs = 30_000;

export async function rotateDataKeys(
  options: RotationOptions,
  deps: RotationDeps,
  signal: AbortSignal,
): Promise<RotationResult> {
  deps.masterKeys.refresh();
  const keys = await deps.masterKeys.current(signal);
  let rewrapped = 0;
  for (let pass = 1; pass <= passesMax; pass++) {
    const before = rewrapped;
    let seen = 0;
    const failures: VaultError[] = [];
    let failed = 0;
    let skipped = 0;
    await forEach(deps.storage.list(keyringsPrefix, signal), options.concurrency ?? 16, async (objectKey) => {
      const outcome = await rewrap(objectKey, keys, options.format, deps, signal);
      if (outcome === "gone") return;
      if (outcome === "foreign") {
        skipped += 1;
        return;
      }
      seen += 1;
      if (outcome === "rewrapped") rewrapped += 1;
      if (outcome instanceof VaultError) {
        failed += 1;
        if (failures.length < shownFailuresMax) failures.push(outcome);
      }
      deps.onProgress?.({ pass, seen, rewrapped });
    });
    if (rewrapped === before)
      return { masterKeyId: keys.newest.id, objects: seen, rewrapped, failed, failures, skipped };
  }
  throw new VaultError(
    "unavailable",
    `after ${passesMax} passes, new data keys still use an older master key; add the newest one to every vault, then run this again`,
  );
}

/** "foreign": a name that krane does not use, so it is unknown which master key the object needs. */
type RewrapOutcome = "rewrapped" | "current" | "foreign" | "gone" | VaultError;

/** Returns an error for an object that cannot be opened, and continues with the others. A storage failure ends the pass. */
async function rewrap(
  objectKey: string,
  keys: MasterKeys,
  format: WriteFormat,
  { storage, clock }: RotationDeps,
  signal: AbortSignal,
): Promise<RewrapOutcome> {
  const name = parseObjectKey(objectKey);
  if (name === undefined) return "foreign";
  for (let tries = 0; tries < triesMax; tries++) {
    const stored = await withTimeout(clock, stepTimeoutMs, signal, (limited) =>
      storage.read(objectKey, limited),
    );
    if (stored === undefined) return "gone";
    const bytes = rewrappedBytes(stored.bytes, name.keyring, objectKey, keys, format, clock.wallMs());
    if (bytes === "current" || bytes instanceof VaultError) return bytes;
    const outcome = await withTimeout(clock, stepTimeoutMs, signal, (limited) =>
      storage.replace(objectKey, bytes, stored.version, limited),
    );
    if (outcome === "replaced") return "rewrapped";
  }
  return new VaultError("unavailable", `${objectKey}: was changed concurrently at every attempt`);
}

function rewrappedBytes(
  bytes: Uint8Array,
  keyring: string,
  objectKey: string,
  keys: MasterKeys,
  format: WriteFormat,
  wallMs: number,
): Uint8Array | "current" | VaultError {
  try {
    const wrapped = parseWrappedDataKey(bytes, keyring, objectKey);
    const dataKey = wrapped.unwrap(keys);
    if (dataKey === undefined) {
      const id = JSON.stringify(wrapped.masterKeyId.slice(0, 80));
      return new VaultError(
        "unusable_key",
        `${objectKey}: is wrapped by master key ${id}, which is not configured; add it to vault.master_keys before the newest one`,
      );
    }
    if (wrapped.masterKeyId === keys.newest.id) return "current";
    return wrapDataKey(dataKey, keys.newest, { keyring, format, wallMs });
  } catch (error) {
    if (error instanceof VaultError) return error;
    throw error;
  }
}

/** Runs the work on every item, a limited number at a time; the first failure ends it. */
async function forEach<T>(
  items: AsyncIterable<T>,
  concurrency: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  const failures: unknown[] = [];
  try {
    for await (const item of items) {
      const task: Promise<void> = work(item)
        .catch((error: unknown) => void failures.push(error))
        .finally(() => running.delete(task));
      running.add(task);
      if (running.size >= concurrency) await Promise.race(running);
      if (failures.length > 0) break;
    }
  } finally {
    // No work of a failed rotation may continue in the background.
    await Promise.all(running);
  }
  if (failures.length > 0) throw failures[0];
}
