// Creates the configured vault: a remote one if `vault.url` is set, else an embedded one if there are master keys, else
// none.
import type { Interceptor } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { openCaFile, type TrustedCa } from "../config/ca-file.ts";
import type { EmbeddedVaultConfig, VaultConfig, VaultStorageConfig } from "../config/config.ts";
import type { SecretRef } from "../config/secret.ts";
import { createSecretSource, type SecretSource } from "../config/secret-source.ts";
import { type Log, secretWarning } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createEmbeddedVault } from "./embedded-vault.ts";
import { createMasterKeySource, type MasterKeySource } from "./master-keys.ts";
import { createRemoteVault } from "./remote-vault.ts";
import { createFileStorage } from "./storage/file-storage.ts";
import { createS3Storage } from "./storage/s3-storage.ts";
import type { VaultStorage } from "./storage/storage.ts";
import type { OpenVault } from "./vault.ts";

export interface VaultDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: Pick<Metrics, "circuitBreakerRequests" | "circuitBreakerErrors">;
  /** For calls to a remote vault. */
  readonly interceptors?: readonly Interceptor[] | undefined;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

/** Reads the files that the configuration names, and rejects if they are invalid. It opens no connection. */
export async function createVault(
  config: VaultConfig | undefined,
  deps: VaultDeps,
  signal: AbortSignal,
): Promise<OpenVault | undefined> {
  if (config === undefined) return undefined;
  if (config.kind === "remote") {
    const { url, caFile, token } = config;
    const ca = caFile === undefined ? undefined : await openVaultCa(caFile, deps, signal);
    return createRemoteVault(
      { url, ca, ...(token === undefined ? {} : { token: createVaultSecret(token, deps) }) },
      deps,
    );
  }
  const { storage, masterKeys } = await openKeyStorage(config, deps, signal);
  return createEmbeddedVault({ format: config.writeFormat }, { storage, masterKeys, clock: deps.clock });
}

export interface KeyStorage {
  readonly storage: VaultStorage;
  readonly masterKeys: MasterKeySource;
}

/** The storage and master keys of an embedded vault, for commands that work on the keys themselves. */
export async function openKeyStorage(
  config: EmbeddedVaultConfig,
  deps: VaultDeps,
  signal: AbortSignal,
): Promise<KeyStorage> {
  const masterKeys = createMasterKeySource(createVaultSecret(config.masterKeys, deps), (error) =>
    deps.log.warn("the new master keys are invalid; the last ones stay in use", { error }),
  );
  // Finds a wrong key now, rather than when the first pod requests its secrets.
  await masterKeys.current(signal);
  return { storage: createStorage(config.storage, deps), masterKeys };
}

function createStorage(config: VaultStorageConfig, deps: VaultDeps): VaultStorage {
  if (config.kind === "file") return createFileStorage(config.path, deps);
  const { url, region, bucket, accessKeyId } = config;
  const accessKeySecret = createVaultSecret(config.accessKeySecret, deps);
  return createS3Storage({
    ...{ url, bucket, accessKeyId, accessKeySecret },
    ...(region === undefined ? {} : { region }),
  });
}

function openVaultCa(path: string, deps: VaultDeps, signal: AbortSignal): Promise<TrustedCa> {
  const { clock, log, readTextFile } = deps;
  const onFailure = (error: unknown) =>
    log.warn("the CA cannot be read again; the last one stays in use", { setting: "vault.ca_file", error });
  return openCaFile(path, { readTextFile, nowMs: () => clock.nowMs(), onFailure }, signal);
}

function createVaultSecret(ref: SecretRef, { clock, log, readTextFile }: VaultDeps): SecretSource {
  return createSecretSource(ref, {
    readTextFile,
    nowMs: () => clock.nowMs(),
    onFailure: secretWarning(log),
  });
}
