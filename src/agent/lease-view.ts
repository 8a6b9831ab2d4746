// Shows the lease of the region: who leads, since when, and how fresh that is.
import { create } from "@bufbuild/protobuf";
import { type Clock, utcText } from "../concurrency/clock.ts";
import type { Config } from "../config/config.ts";
import { type LeaseStatus, LeaseStatus_Role, LeaseStatusSchema } from "../gen/krane/v1/agent_pb.ts";
import type { LeaseStatus as SeenLease } from "../kube/lease-election.ts";
import { instanceOf, otherControlPlane } from "./leader-announcement.ts";

export interface LeaseView {
  /** Undefined if no lease is used. */
  message(): LeaseStatus | undefined;
  /** Why this agent cannot change anything; undefined if it may write. */
  standby(): string | undefined;
  /** Sentences for people. */
  warnings(): readonly string[];
  /** A few words, without names of anything but agents; undefined if no lease is used. */
  summary(): string | undefined;
}

/** For agents without an election. */
export const noLeaseView: LeaseView = {
  message: () => undefined,
  standby: () => undefined,
  warnings: () => [],
  summary: () => undefined,
};

const roles = {
  unknown: LeaseStatus_Role.UNSPECIFIED,
  leader: LeaseStatus_Role.LEADER,
  standby: LeaseStatus_Role.STANDBY,
  alone: LeaseStatus_Role.ALONE,
} as const;

export function createLeaseView(
  config: Pick<Config, "lease" | "control">,
  source: { status(): SeenLease | undefined },
  { clock }: { readonly clock: Clock },
): LeaseView {
  if (config.lease === "off") return { ...noLeaseView, warnings: () => [aloneBySetting] };
  const leaderOf = (seen: SeenLease | undefined) => (seen?.holder ? instanceOf(seen.holder.identity) : "");
  return {
    message() {
      const seen = source.status();
      if (seen === undefined) return undefined;
      const ageMs = seen.freshMs === undefined ? undefined : clock.nowMs() - seen.freshMs;
      return create(LeaseStatusSchema, {
        role: roles[seen.role],
        leader: leaderOf(seen),
        term: BigInt(seen.term),
        sinceMs: BigInt(Math.round(seen.sinceWallMs)),
        renewedAtMs: ageMs === undefined ? 0n : BigInt(Math.round(clock.wallMs() - ageMs)),
        lastError: seen.lastError,
      });
    },
    standby() {
      const seen = source.status();
      if (seen?.role === "leader" || seen?.role === "alone") return undefined;
      const leader = leaderOf(seen);
      return leader === ""
        ? "this agent is a standby; no agent leads yet; retry"
        : `this agent is a standby; ${leader} leads: retry there`;
    },
    warnings() {
      const seen = source.status();
      if (seen?.role === "alone") return [aloneByForce];
      if (seen?.role === "unknown" && seen.lastError !== "")
        return [`no lease, no writes: ${seen.lastError}`];
      const other = otherControlPlane(seen?.holder, config);
      if (other === undefined) return [];
      return [
        `${leaderOf(seen)} leads this region for another control plane, ${other}: one of the two agents should not be here`,
      ];
    },
    summary() {
      const seen = source.status();
      if (seen === undefined || seen.role === "unknown") return "has not read the lease yet";
      if (seen.role === "leader") return `leads since ${utcText(seen.sinceWallMs)}`;
      if (seen.role === "alone") return "no right to use Leases; writes without one";
      const leader = leaderOf(seen);
      if (leader === "") return "standby; no agent leads";
      const isOther = otherControlPlane(seen.holder, config) !== undefined;
      return `standby; ${leader} leads${isOther ? ", for another control plane" : ""}`;
    },
  };
}

const aloneBySetting =
  'nothing keeps a second agent of this region from writing: this one assumes that it is alone (lease = "off")';
const aloneByForce =
  "nothing keeps a second agent of this region from writing: Kubernetes forbids this one to use Leases";
