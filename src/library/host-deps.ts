// The outside world of a program that embeds krane: the system's clock and chance, files, and no log,
// unless it brings its own. Nothing here reads the environment; whoever wants it read hands it in.
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
  /** Default: the system's. It decides jitter and sampling, nothing secret. */
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

/** How files and programs are reached where the caller does not say. */
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
