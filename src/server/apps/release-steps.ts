// Takes the steps that are due in the releases of all apps. Any number of servers may do this at the same time: each step is
// decided again in the transaction that writes it.
import type { App } from "../../gen/krane/admin/v1/app_pb.ts";
import type { AgentRecord, AppFacts, Store } from "../store.ts";
import { advance } from "./releases.ts";
import { sightsOf, trafficOf } from "./sights.ts";

/** The author of the changes. */
const by = "releases";

/** How often it is worth looking. */
export const releaseStepsEveryMs = 1_000;

/** The app after the steps that are due; undefined if none is. */
function nextApp(facts: AppFacts, agent: AgentRecord | undefined, nowMs: number): App | undefined {
  const { app, route } = facts;
  if (app === undefined) return undefined;
  const next = advance(app, sightsOf(facts, agent, nowMs), nowMs, trafficOf(route, agent, nowMs));
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
