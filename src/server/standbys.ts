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

/** Without one that leads by now. */
export function currentStandbys({ standbys = [], state }: HeardAgent): readonly Standby[] {
  const leader = state?.report.state?.instanceId;
  return standbys.filter(({ instanceId, atMs }) => instanceId !== leader || atMs > (state?.atMs ?? 0));
}
