// The configuration of the vault commands.
import type { Command } from "commander";
import type { VaultProgramConfig } from "../../config/config.ts";
import type { ProcessEnv } from "../../config/expand.ts";
import { parseVaultConfig } from "../../config/parse.ts";
import type { VaultUse } from "../../config/vault-rules.ts";
import { addConfigOptions, loadConfigAs } from "../config-source.ts";
import type { Io } from "../io.ts";

const ofServer = (path: string) =>
  ["rpc_port", "listen_host", "instance_id", "region"].includes(path) ||
  /^(vault|tls|observability)\./.test(path);

/** Adds `--config` and a flag for each setting of `krane vault serve`. */
export function addVaultServerOptions(command: Command): Command {
  return addConfigOptions(command, ofServer);
}

export async function loadVaultConfig(
  use: VaultUse,
  command: Command,
  env: ProcessEnv,
  io: Io,
  signal: AbortSignal,
): Promise<VaultProgramConfig | undefined> {
  const loaded = await loadConfigAs((input) => parseVaultConfig(input, use), command, env, io, signal);
  return loaded?.config;
}
