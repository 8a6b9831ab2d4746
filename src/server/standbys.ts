// The standbys of a region's agent, as far as the control plane has heard from them. Whoever has the token of the region can
// name any instance, so only a few are kept. Pure.
import type { ReportAgentStateRequest } from "../gen/ctrl/v1/cluster_service_pb.ts";

export interface Standby {
  readonly instanceId: string;
  readonly version: string;
  /** When it was last heard. */
  readonly atMs: number;
}

export const standbysMax = 10;

/** Without control characters, which terminals interpret and databases reject. */
export function limitedStandby(standby: Standby): Standby {
  const limited = (text: string) => text.slice(0, 253).replaceAll(/\p{Cc}+/gu, " ");
  return { ...standby, instanceId: limited(standby.instanceId), version: limited(standby.version) };
}

/** The last heard first. */
export function withStandby(standbys: readonly Standby[] = [], standby: Standby): readonly Standby[] {
  const others = standbys.filter(({ instanceId }) => instanceId !== standby.instanceId);
  return [standby, ...others].slice(0, standbysMax);
}

interface HeardAgent {
  readonly standbys?: readonly Standby[];
  /** The last report of the leader. */
  readonly state?: { readonly report: ReportAgentStateRequest; readonly atMs: number };
}

const silenceMsMax = 3_600_000;

/**
 * Without one that leads by now, and without those that were silent for an hour when the region was last heard: each upgrade
 * replaces all of them.
 */
export function currentStandbys({ standbys = [], state }: HeardAgent): readonly Standby[] {
  const leader = state?.report.state?.instanceId;
  const ledAtMs = state?.atMs ?? 0;
  const heardAtMs = Math.max(ledAtMs, ...standbys.map(({ atMs }) => atMs));
  return standbys.filter(
    ({ instanceId, atMs }) => (instanceId !== leader || atMs > ledAtMs) && heardAtMs - atMs < silenceMsMax,
  );
}
