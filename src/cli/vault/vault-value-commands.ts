// krane vault keygen, encrypt and decrypt. Only the result goes to standard output.
import type { Command } from "commander";
import { createSystemClock } from "../../concurrency/clock.ts";
import type { ProcessEnv } from "../../config/expand.ts";
import { createVault } from "../../vault/create-vault.ts";
import { generateMasterKey } from "../../vault/master-keys.ts";
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
