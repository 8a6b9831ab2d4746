// What the vault commands for a person have in common: a configuration, and words instead
// of log lines.
import type { Command } from "commander";
import { createSystemClock } from "../../concurrency/clock.ts";
import type { VaultProgramConfig } from "../../config/config.ts";
import { parseVaultConfig } from "../../config/parse.ts";
import type { VaultUse } from "../../config/vault-rules.ts";
import type { VaultDeps } from "../../vault/create-vault.ts";
import { addConfigOptions, loadConfigAs } from "../config-source.ts";
import type { Environment, Io } from "../io.ts";
import { createProcessLog } from "../process/process-log.ts";

const ofServer = (path: string) =>
  ["rpc_port", "instance_id", "region"].includes(path) || /^(vault|tls|observability)\./.test(path);

/** `--config` and one flag for each setting that a vault reads which serves others. */
export function addVaultServerOptions(command: Command): Command {
  return addConfigOptions(command, ofServer);
}

export async function loadVaultConfig(
  use: VaultUse,
  command: Command,
  env: Environment,
  io: Io,
  signal: AbortSignal,
): Promise<VaultProgramConfig | undefined> {
  const loaded = await loadConfigAs((input) => parseVaultConfig(input, use), command, env, io, signal);
  return loaded?.config;
}

/** For a command that ends by itself: only what is wrong is said, and on standard error, because the result is on the other. */
export function vaultDeps({ instanceId, region, observability }: VaultProgramConfig, io: Io): VaultDeps {
  const log = createProcessLog(
    {
      instance: { id: instanceId, region, version: "" },
      logging: { ...observability.logging, level: "warn" },
    },
    io.stderr,
  );
  return { clock: createSystemClock(), log, readTextFile: io.readTextFile };
}
