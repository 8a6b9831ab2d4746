// The dependencies that an embedding program may pass in: clock, randomness, log. Defaults are the system's clock and
// randomness, and no log. Nothing here reads process.env; the embedding program passes it in.
import { readFile } from "node:fs/promises";
import type { AgentDeps } from "../agent/agent-deps.ts";
import { type Clock, createSystemClock } from "../concurrency/clock.ts";
import { createSystemRandom, type Random } from "../concurrency/random.ts";
import { createCommandRunner } from "../kube/command-runner.ts";
import { createLog, type Log } from "../telemetry/log.ts";
import type { BuildInfo } from "../telemetry/metrics.ts";

export interface HostDeps {
  /** Default: the system's. */
  readonly clock?: Clock;
  /** Default: the system's. Used for jitter and sampling, not for secrets. */
  readonly random?: Random;
  /** See `createLog`. Default: nothing is logged. */
  readonly log?: Log;
}

// Replaced by tools/bundle.ts.
declare const KRANE_VERSION: string | undefined;
declare const KRANE_REVISION: string | undefined;

export const build: BuildInfo = {
  version: typeof KRANE_VERSION === "string" ? KRANE_VERSION : "source",
  revision: typeof KRANE_REVISION === "string" ? KRANE_REVISION : "source",
  nodeVersion: process.version,
};

export function completeHostDeps(given: HostDeps): Required<HostDeps> {
  const { clock = createSystemClock(), random = createSystemRandom() } = given;
  return { clock, random, log: given.log ?? createSilentLog(clock, random) };
}

/** The default access to files and commands. */
export function completeAccess(env: AgentDeps["env"]): Pick<AgentDeps, "readTextFile" | "runCommand"> {
  return {
    readTextFile: (path, signal) => readFile(path, { encoding: "utf8", signal }),
    runCommand: createCommandRunner(env),
  };
}

function createSilentLog(clock: Clock, random: Random): Log {
  const instance = { id: "embedded", region: "", version: build.version };
  const options = { level: "error", instance, sampling: { rate: 0, slowThresholdMs: 0 } } as const;
  return createLog(options, { clock, random, write: () => undefined });
}
