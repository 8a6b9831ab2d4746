// Checks that a remote vault is reachable and accepts the token, or that the keys and the storage of an embedded one are
// usable. Encrypts nothing, because that would create a keyring.
import type { Clock } from "../concurrency/clock.ts";
import type { Config, EmbeddedVaultConfig, RemoteVaultConfig } from "../config/config.ts";
import { createSecretSource } from "../config/secret-source.ts";
import type { Log } from "../telemetry/log.ts";
import { openKeyStorage } from "../vault/create-vault.ts";
import { latest, objectKeyOf } from "../vault/identifiers.ts";
import { createRemoteVault } from "../vault/remote-vault.ts";
import { VaultError } from "../vault/vault-error.ts";
import { type Check, describeError, retryWhileUnreachable } from "./checks.ts";
import { type Finding, ok, problem, skipped } from "./finding.ts";

export interface VaultCheckDeps {
  readonly clock: Clock;
  readonly log: Log;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

const name = "vault";
// A keyring that no environment has, and a text that is not a ciphertext.
const keyring = "krane-doctor";
const invalidCiphertext = "AAAA";

export function vaultCheck({ vault }: Config, deps: VaultCheckDeps): Check {
  return {
    name,
    async run(signal) {
      if (vault === undefined) return [skipped(name, "not configured: deployments get no secrets")];
      return [
        await (vault.kind === "remote"
          ? checkRemote(vault, deps, signal)
          : checkEmbedded(vault, deps, signal)),
      ];
    },
  };
}

async function checkRemote(
  { url, caFile, token }: RemoteVaultConfig,
  { clock, readTextFile }: VaultCheckDeps,
  signal: AbortSignal,
): Promise<Finding> {
  const ca = caFile === undefined ? undefined : await readTextFile(caFile, signal);
  const source = token && createSecretSource(token, { readTextFile, nowMs: () => clock.nowMs() });
  const vault = createRemoteVault({ url, ca, ...(source && { token: source }) }, { clock });
  try {
    const ask = () => vault.decrypt({ keyring, encrypted: invalidCiphertext }, signal);
    await retryWhileUnreachable(ask, isUnreachable, clock, signal);
    return problem(name, `${url} accepted an invalid ciphertext, so it is not a vault`, "correct vault.url");
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    if (error.code === "undecryptable") return ok(name, `${url} is reachable and accepts the token`);
    return problem(name, `${url}: ${error.message}`, remedyOf(error));
  } finally {
    await vault.close();
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof VaultError && error.code === "unavailable";
}

function remedyOf({ code }: VaultError): string {
  if (code === "unauthenticated")
    return "put a token that the vault accepts into vault.token or vault.token_file";
  if (code === "unavailable")
    return "check that the vault runs, that vault.url is right, and that vault.ca_file has its CA";
  return "check vault.url and the log of the vault";
}

async function checkEmbedded(
  vault: EmbeddedVaultConfig,
  deps: VaultCheckDeps,
  signal: AbortSignal,
): Promise<Finding> {
  let remedy = "correct vault.master_keys or vault.master_keys_file";
  try {
    const { storage } = await openKeyStorage(vault, deps, signal);
    remedy = `check that the key storage is reachable (vault.${vault.storage.kind})`;
    try {
      await storage.read(objectKeyOf(keyring, latest), signal);
    } finally {
      await storage.close();
    }
    return ok(name, "the master keys are valid and the storage can be read");
  } catch (error) {
    signal.throwIfAborted();
    return problem(name, describeError(error), remedy);
  }
}
