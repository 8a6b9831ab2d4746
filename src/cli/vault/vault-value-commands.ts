// krane vault keygen, encrypt, decrypt and rotate. Only the result goes to standard output.
import type { Command } from "commander";
import { type Clock, createSystemClock } from "../../concurrency/clock.ts";
import type { VaultProgramConfig } from "../../config/config.ts";
import type { ProcessEnv } from "../../config/expand.ts";
import { createVault, openKeyStorage } from "../../vault/create-vault.ts";
import { generateMasterKey } from "../../vault/master-keys.ts";
import { type RotationProgress, type RotationResult, rotateDataKeys } from "../../vault/rotation.ts";
import type { Vault } from "../../vault/vault.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { withoutFinalNewline } from "../process/input.ts";
import { listenForStop } from "../process/stop-request.ts";
import { loadVaultConfig } from "./vault-access.ts";
import { vaultDeps } from "./vault-deps.ts";

// Base64 of the largest value, plus some room.
const inputBytesMax = 2 * 1024 * 1024;

export function runKeygen(io: Io): number {
  io.stdout.write(`${generateMasterKey(createSystemClock().wallMs())}\n`);
  return exitCodes.ok;
}

export function runEncrypt(command: Command, env: ProcessEnv, io: Io): Promise<number> {
  return withValue(command, env, io, async (vault, { keyring, name: context, exact }, text, signal) => {
    const data = exact ? text : withoutFinalNewline(text);
    const { encrypted } = await vault.encrypt({ keyring, data, context }, signal);
    return `${encrypted}\n`;
  });
}

export function runDecrypt(command: Command, env: ProcessEnv, io: Io): Promise<number> {
  return withValue(command, env, io, (vault, { keyring, name: context }, text, signal) =>
    // Files and echo end with a newline, which is not part of the base64.
    vault.decrypt({ keyring, encrypted: text.trim(), context }, signal),
  );
}

interface ValueOptions {
  readonly keyring: string;
  readonly name?: string;
  readonly in?: string;
  readonly exact?: boolean;
}

async function withValue(
  command: Command,
  env: ProcessEnv,
  io: Io,
  work: (vault: Vault, options: ValueOptions, text: string, signal: AbortSignal) => Promise<string>,
): Promise<number> {
  const stop = listenForStop(io);
  try {
    const config = await loadVaultConfig("call", command, env, io, stop.signal);
    if (config === undefined) return exitCodes.config;
    const vault = await createVault(config.vault, vaultDeps(config, env, io), stop.signal);
    if (vault === undefined || io.readInput === undefined) throw new TypeError("no vault, or no input");
    try {
      const options = command.opts<ValueOptions>();
      const text = await io.readInput(options.in, inputBytesMax, stop.signal);
      io.stdout.write(await work(vault, options, text, stop.signal));
      return exitCodes.ok;
    } finally {
      await vault.close();
    }
  } finally {
    stop.release();
  }
}

const progressEveryMs = 1_000;

export async function runRotate(command: Command, env: ProcessEnv, io: Io): Promise<number> {
  const stop = listenForStop(io);
  try {
    const config = await loadVaultConfig("keys", command, env, io, stop.signal);
    if (config === undefined) return exitCodes.config;
    return await rotate(config, env, io, stop.signal);
  } catch (error) {
    if (error !== stop.signal.reason) throw error;
    io.stderr.write("krane: rotation was interrupted; nothing is lost, run it again to continue\n");
    return exitCodes.failure;
  } finally {
    stop.release();
  }
}

async function rotate(
  { vault, ...config }: VaultProgramConfig,
  env: ProcessEnv,
  io: Io,
  signal: AbortSignal,
): Promise<number> {
  if (vault.kind !== "embedded") throw new TypeError("the rules let a remote vault through");
  const deps = vaultDeps({ ...config, vault }, env, io);
  const { storage, masterKeys } = await openKeyStorage(vault, deps, signal);
  try {
    const onProgress = throttled(deps.clock, (progress: RotationProgress) =>
      io.stderr.write(progressLine(progress)),
    );
    const options = { format: vault.writeFormat };
    const result = await rotateDataKeys(
      options,
      { storage, masterKeys, clock: deps.clock, onProgress },
      signal,
    );
    io.stderr.write(result.failures.map(({ message }) => `krane: ${message}\n`).join(""));
    io.stdout.write(summaryOf(result));
    return result.failed === 0 ? exitCodes.ok : exitCodes.failure;
  } finally {
    await storage.close();
  }
}

function progressLine({ pass, seen, rewrapped }: RotationProgress): string {
  return `pass ${pass}: ${seen} data keys checked, ${rewrapped} re-encrypted with the newest master key\n`;
}

function summaryOf({ masterKeyId, objects, rewrapped, failed, skipped }: RotationResult): string {
  const done = `${objects} stored data keys, ${rewrapped} of them re-encrypted with ${masterKeyId}`;
  if (failed > 0) return `${done}; ${failed} failed: keep every master key\n`;
  return skipped === 0
    ? `${done}; older master keys can be removed\n`
    : `${done}; ${skipped} objects have names that krane does not use and were skipped: keep every master key that they need\n`;
}

function throttled<T>(clock: Clock, tell: (value: T) => void): (value: T) => void {
  let lastMs = clock.nowMs();
  return (value) => {
    if (clock.nowMs() - lastMs < progressEveryMs) return;
    lastMs = clock.nowMs();
    tell(value);
  };
}
