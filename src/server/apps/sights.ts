// What the control plane sees of a release: its deployment's phase, unless the agent is silent. And where the route of
// the app leads.
import { ObjectView_Phase as Phase } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Release } from "../../gen/krane/admin/v1/app_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../../gen/krane/v1/agent_pb.ts";
import { servesKind } from "../../why/served-kinds.ts";
import { isUnheard } from "../last-heard.ts";
import { phaseFacts, phaseOf } from "../phase.ts";
import type { AgentRecord, AppFacts, StoredObject } from "../store.ts";
import type { Sight, Traffic } from "./releases.ts";

type Agent = Pick<AgentRecord, "heartbeatAtMs" | "heardSinceMs" | "state" | "known"> | undefined;

export function trafficOf(route: StoredObject<"route"> | undefined, agent: Agent, nowMs: number): Traffic {
  if (route === undefined) return { state: "none" };
  if (isUnheard(agent, nowMs)) return { state: "unknown" };
  const { deploymentId = "", exists = false, gateway } = route.report ?? {};
  const { nextDeploymentId = "" } = gateway ?? {};
  // It has no controller for them, or none yet: what it once reported may still be in the cluster.
  if (!servesKind("route", agent?.state?.report.state))
    return exists
      ? { state: "at", deploymentId, isFinal: true, isSettled: false, nextDeploymentId }
      : { state: "none" };
  const facts = phaseFacts("route", route, agent?.known);
  // It reports nothing at present, so the Service may have moved since.
  if (facts.isHeldBack && route.reportedVersion < route.row.version) return { state: "unknown" };
  const isFinal = phaseOf(facts) === Phase.FAILED;
  if (route.report === undefined && !isFinal) return { state: "unknown" };
  return { state: "at", deploymentId, isFinal, isSettled: facts.isSettled, nextDeploymentId };
}

/** What is seen of each release of an app. */
export function sightsOf(
  { deployments }: Pick<AppFacts, "deployments">,
  agent: Agent,
  nowMs: number,
): (release: Release) => Sight {
  return ({ template }) =>
    sightOf(
      deployments.find(({ row }) => row.id === template?.deploymentId),
      agent,
      nowMs,
    );
}

function sightOf(deployment: StoredObject<"deployment"> | undefined, agent: Agent, nowMs: number): Sight {
  if (deployment === undefined) return { state: "waiting", reason: "" };
  // Its last report may no longer be true, so no release becomes current or fails because of it. After an outage of the
  // control plane, every agent is silent until it connects again.
  if (isUnheard(agent, nowMs)) return { state: "unknown" };
  const heardSinceMs = agent?.heardSinceMs ?? 0;
  const facts = phaseFacts("deployment", deployment, agent?.known);
  const { trouble } = facts;
  const reason = trouble?.reason || trouble?.failing || "";
  switch (phaseOf(facts)) {
    case Phase.READY:
    case Phase.PAUSED:
      return { state: "ready", heardSinceMs };
    case Phase.FAILED:
      return trouble?.outcome === Outcome.PARKED
        ? { state: "refused", reason, heardSinceMs }
        : { state: "failing", reason: reason || "its pods cannot run", heardSinceMs };
    default:
      return { state: "waiting", reason, heardSinceMs };
  }
}
