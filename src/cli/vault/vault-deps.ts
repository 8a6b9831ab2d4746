// What a vault needs within a command for a person: words instead of log lines.
import { createSystemClock } from "../../concurrency/clock.ts";
import type { VaultProgramConfig } from "../../config/config.ts";
import type { VaultDeps } from "../../vault/create-vault.ts";
import type { Io } from "../io.ts";
import { createProcessLog } from "../process/process-log.ts";

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
