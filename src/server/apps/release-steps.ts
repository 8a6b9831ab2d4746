// Takes the steps that are due in the releases of all apps. Any number of servers may do this at the same time: each step is
// decided again in the transaction that writes it.
import { ObjectView_Phase as Phase } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { App } from "../../gen/krane/admin/v1/app_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../../gen/krane/v1/agent_pb.ts";
import { isUnheard } from "../last-heard.ts";
import { phaseFacts, phaseOf } from "../phase.ts";
import type { AgentRecord, AppFacts, Store, StoredObject } from "../store.ts";
import { advance, type Sight } from "./releases.ts";

/** The author of the changes. */
const by = "releases";

/** How often it is worth looking. */
export const releaseStepsEveryMs = 1_000;

/** The app after the steps that are due; undefined if none is. */
function nextApp(
  { app, deployments }: AppFacts,
  agent: AgentRecord | undefined,
  nowMs: number,
): App | undefined {
  if (app === undefined) return undefined;
  const next = advance(
    app,
    ({ template }) =>
      sightOf(
        deployments.find(({ row }) => row.id === template?.deploymentId),
        agent,
        nowMs,
      ),
    nowMs,
  );
  return next === app ? undefined : next;
}

/** An app that fails does not keep the others waiting: all errors are thrown at the end. */
export async function advanceReleases(store: Store, nowMs: number, signal: AbortSignal): Promise<void> {
  if ((await store.incarnation())?.isReplica) return;
  const agents = new Map<string, AgentRecord | undefined>();
  const errors: unknown[] = [];
  for (const { region, id } of await store.activeApps()) {
    signal.throwIfAborted();
    try {
      if (!agents.has(region)) agents.set(region, (await store.agents(region))[0]);
      const decide = (facts: AppFacts) => nextApp(facts, agents.get(region), nowMs);
      // Without a lock, because mostly there is nothing to do.
      if (decide(await store.app(region, id)) === undefined) continue;
      await store.changeApp(region, id, decide, { by, atMs: nowMs });
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, `${errors.length} apps could not be changed`);
}

/** What the control plane sees of a release: its deployment's phase, unless the agent is silent. */
function sightOf(
  deployment: StoredObject<"deployment"> | undefined,
  agent: Pick<AgentRecord, "heartbeatAtMs" | "heardSinceMs" | "state" | "known"> | undefined,
  nowMs: number,
): Sight {
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
