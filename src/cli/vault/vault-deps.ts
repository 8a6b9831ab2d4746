// The dependencies of a vault inside a command.
import { createSystemClock } from "../../concurrency/clock.ts";
import type { VaultProgramConfig } from "../../config/config.ts";
import type { ProcessEnv } from "../../config/expand.ts";
import type { VaultDeps } from "../../vault/create-vault.ts";
import type { Io } from "../io.ts";
import { createProcessLog } from "../process/process-log.ts";

/** Logs only warnings and errors, and to standard error, because the result goes to standard output. */
export function vaultDeps(
  { instanceId, region, observability }: VaultProgramConfig,
  env: ProcessEnv,
  io: Io,
): VaultDeps {
  const log = createProcessLog(
    {
      instance: { id: instanceId, region, version: "" },
      logging: { ...observability.logging, level: "warn" },
    },
    io.stderr,
    env,
  );
  return { clock: createSystemClock(), log, readTextFile: io.readTextFile };
}
