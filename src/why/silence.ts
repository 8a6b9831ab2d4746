// Whether the agent of a region is silent: what it reported last is then shown with its age, not as the present. Pure.
import type { AgentView } from "../gen/krane/admin/v1/admin_pb.ts";

// An agent sends a heartbeat and its state every 30 s. The rest is for a slow network.
export const silentMs = 45_000;

/** When the agent of a region was last heard; 0 for never. */
export function heardAtMs({ heartbeatAtMs, stateAtMs }: AgentView): bigint {
  return heartbeatAtMs > stateAtMs ? heartbeatAtMs : stateAtMs;
}

/** Whether the agent has been silent for longer than its reporting interval: all that it reported may have changed. */
export function isSilent(agent: AgentView, nowMs: number): boolean {
  return isStale(heardAtMs(agent), nowMs);
}

/** Whether something that an agent repeats every interval should have come again by now. */
export function isStale(atMs: bigint, nowMs: number): boolean {
  return nowMs - Number(atMs) > silentMs;
}
