// When an agent was last heard, and since when without a silence. An outage of the store is a silence too: nothing can be
// stored meanwhile.
import { isStale } from "../why/silence.ts";
import type { AgentRecord } from "./store.ts";

type Hearing = Pick<AgentRecord, "heartbeatAtMs" | "heardSinceMs" | "state">;

/** Whether it has been silent for longer than its reporting interval; so is one that was never heard. */
export function isUnheard(agent: Hearing | undefined, nowMs: number): boolean {
  const heardAtMs = Math.max(agent?.heartbeatAtMs ?? 0, agent?.state?.atMs ?? 0);
  return heardAtMs === 0 || isStale(BigInt(Math.trunc(heardAtMs)), nowMs);
}

/** Since when it has not been silent, given that it is not silent now. */
export function heardSince(agent: Hearing, nowMs: number): Pick<Hearing, "heardSinceMs"> {
  return isUnheard(agent, nowMs) ? { heardSinceMs: nowMs } : {};
}
