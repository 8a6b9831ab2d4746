// Encrypts a secret with the vault of --config if given, else that of the context. The vault is opened before the
// prompt, so that nobody types a secret that cannot be encrypted.
import type { Command } from "commander";
import { createSystemClock } from "../../concurrency/clock.ts";
import { createSecretSource } from "../../config/secret-source.ts";
import { bearerToken } from "../../config/secret-types.ts";
import { createVault } from "../../vault/create-vault.ts";
import { createRemoteVault } from "../../vault/remote-vault.ts";
import type { OpenVault } from "../../vault/vault.ts";
import { VaultError, type VaultErrorCode } from "../../vault/vault-error.ts";
import { type Admin, type CommandDeps, loadFile } from "../admin/admin-access.ts";
import type { Endpoint } from "../admin/context-file.ts";
import { CommandError, type CommandErrorCode } from "../command-error.ts";
import type { Io } from "../io.ts";
import { loadVaultConfig } from "../vault/vault-access.ts";
import { vaultDeps } from "../vault/vault-deps.ts";

export interface SecretValue {
  readonly keyring: string;
  /** Bound into the ciphertext, so that it can be decrypted only for this variable. */
  readonly name: string;
  read(): Promise<string>;
}

export async function encryptSecret(
  { keyring, name, read }: SecretValue,
  admin: Admin,
  deps: CommandDeps,
  command: Command,
): Promise<string> {
  const { signal } = admin;
  const vault = await openVault(admin, deps, command);
  try {
    const { encrypted } = await vault.encrypt({ keyring, data: await read(), context: name }, signal);
    return encrypted;
  } catch (error) {
    throw error instanceof VaultError ? refusalOf(error) : error;
  } finally {
    await vault.close();
  }
}

async function openVault(admin: Admin, { env, io }: CommandDeps, command: Command): Promise<OpenVault> {
  const { signal, target } = admin;
  if (command.opts<{ config?: string }>().config !== undefined) {
    const config = await loadVaultConfig("call", command, env, io, signal);
    const vault = config && (await createVault(config.vault, vaultDeps(config, env, io), signal));
    if (vault === undefined) throw new CommandError("config", "--config has no usable vault");
    return vault;
  }
  const { context } = target;
  if (context?.vault?.url !== undefined)
    return openRemote(context.vault, context.vault.url, context.name, io, signal);
  const place = context === undefined ? "a context" : `[contexts.${context.name}.vault]`;
  throw new CommandError(
    "config",
    `no vault to encrypt with; set url and token_file in ${place}, or pass its configuration with --config`,
  );
}

async function openRemote(
  { token, caFile }: Endpoint,
  url: string,
  contextName: string,
  io: Io,
  signal: AbortSignal,
): Promise<OpenVault> {
  const clock = createSystemClock();
  const ca =
    caFile === undefined
      ? undefined
      : await loadFile(caFile, `contexts.${contextName}.vault.ca_file`, io, signal);
  const deps = { readTextFile: io.readTextFile, nowMs: () => clock.nowMs() };
  const source = token && createSecretSource(token, deps, bearerToken());
  // Read now, so that a missing file is reported as an error of the context, not of the vault.
  await source?.current(signal);
  return createRemoteVault({ url, ca, ...(source && { token: source }) }, { clock });
}

const codes: Partial<Record<VaultErrorCode, CommandErrorCode>> = {
  unauthenticated: "denied",
  unavailable: "unreachable",
};

const remedies: Partial<Record<VaultErrorCode, string>> = {
  unauthenticated: "; check token_file of the vault in the context",
  unavailable: "; check that it is running, and its url in the context",
};

function refusalOf({ code, message }: VaultError): CommandError {
  const text = message.startsWith("vault: ") ? message : `vault: ${message}`;
  return new CommandError(codes[code] ?? "failed", `${text}${remedies[code] ?? ""}`);
}
