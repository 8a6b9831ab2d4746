// Gives running code the current value of the configuration's secrets, including those in files that rotate.

import { sleep } from "../concurrency/clock.ts";
import type { Secret, SecretRef } from "../config/secret.ts";
import { createSecretSource, type SecretSource } from "../config/secret-source.ts";
import { secretWarning } from "../telemetry/log.ts";
import type { AgentDeps } from "./agent-deps.ts";

type SecretDeps = Pick<AgentDeps, "clock" | "log" | "readTextFile">;

export function createAgentSecret(ref: SecretRef, { clock, log, readTextFile }: SecretDeps): SecretSource {
  return createSecretSource(ref, {
    readTextFile,
    nowMs: () => clock.nowMs(),
    onFailure: secretWarning(log),
  });
}

/** A secret for code that cannot wait for a file read. */
export interface HeldSecret {
  reveal(): string;
  /** Reads the secret again every 30 s, until the signal aborts. */
  keepFresh(signal: AbortSignal): Promise<void>;
}

const rereadMs = 30_000;

export async function holdSecret(ref: SecretRef, deps: SecretDeps, signal: AbortSignal): Promise<HeldSecret> {
  const source = createAgentSecret(ref, deps);
  let held: Secret = await source.current(signal);
  return {
    reveal: () => held.reveal(),
    async keepFresh(whileRunning) {
      for (;;) {
        await sleep(deps.clock, rereadMs, whileRunning);
        held = await source.current(whileRunning);
      }
    },
  };
}
