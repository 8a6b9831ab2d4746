// The agent's dependencies on its host: clock, randomness, files, log, environment variables.
import type { Random } from "../concurrency/random.ts";
import type { CredentialDeps } from "../kube/credentials.ts";
import type { Log } from "../telemetry/log.ts";
import type { BuildInfo } from "../telemetry/metrics.ts";

export interface AgentDeps extends CredentialDeps {
  readonly random: Random;
  readonly log: Log;
  readonly build: BuildInfo;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called once, when everything has started. */
  onStarted?(): void;
}
