// Explains how an app is, by the release that decides it: the one that starts, else the newest one if it failed, else
// the current one. Pure.
import {
  type AgentView,
  type AppView,
  ObjectKind,
  type ObjectView,
  ObjectView_Phase as Phase,
} from "../gen/krane/admin/v1/admin_pb.ts";
import { isReleaseOf } from "../kinds/deployment/release-names.ts";
import { releasesOf, trafficOf } from "./app-releases.ts";
import { explain } from "./explain.ts";
import type { Cause, Explanation } from "./explanation.ts";
import { remedyOf } from "./remedies.ts";

/** A deployment that is like this needs nothing but time. */
const calm: ReadonlySet<Cause> = new Set<Cause>(["all-well", "paused", "starting", "not-settled"]);

export function explainApp(view: AppView, agent: AgentView, nowMs: number): Explanation {
  const { starting, failed, current } = releasesOf(view);
  const name = view.app?.spec?.template?.deploymentId ?? "";
  const inner = (deployment: ObjectView | undefined) =>
    explain({ asked: { kind: ObjectKind.DEPLOYMENT, name }, object: deployment, agent }, nowMs);
  const stays = current === undefined ? "" : ` Release ${current.number} is current.`;
  const facts = { region: agent.region, name };
  if (isHeld(view)) {
    const cause = "releases-paused";
    const { desired, applied, live, differences } =
      current === undefined ? nothing : inner(current.deployment);
    return {
      cause,
      summary: `Its releases are paused.${stays}`,
      ...{ desired, applied, live, differences },
      reason: "",
      remedy: remedyOf(cause, facts),
    };
  }
  if (starting !== undefined) {
    const answer = inner(starting.deployment);
    const { percent } = starting.release;
    const part = percent === 0 ? "" : ` It gets ${percent}% of the requests by hostname.`;
    const summary = `Release ${starting.number}: ${answer.summary}${part}${stays}`;
    if (!calm.has(answer.cause)) return { ...answer, summary };
    return { ...answer, cause: "releasing", summary, remedy: remedyOf("releasing", facts) };
  }
  if (failed !== undefined) {
    const cause = "release-failed";
    const rest =
      current === undefined ? ", and the app has no other" : `; the app stays on release ${current.number}`;
    const { desired, applied, live, differences } =
      current === undefined ? nothing : inner(current.deployment);
    return {
      cause,
      summary: `Release ${failed.number} failed${rest}.`,
      ...{ desired, applied, live, differences },
      reason: failed.reason,
      remedy: remedyOf(cause, facts),
    };
  }
  return withTraffic(inner(current?.deployment), view, agent, nowMs);
}

/** Nobody reaches a release by the name of the app before its route leads there. */
function withTraffic(answer: Explanation, view: AppView, agent: AgentView, nowMs: number): Explanation {
  const { route } = view;
  const { current } = releasesOf(view);
  if (route === undefined || current === undefined || answer.cause !== "all-well") return answer;
  const asked = { kind: ObjectKind.ROUTE, name: route.ref?.id ?? "" };
  const moved = explain({ asked, object: route, agent }, nowMs);
  if (trafficOf(view) === "moved") {
    const summary = `${answer.summary} Traffic is at release ${current.number}.`;
    const isServed = (view.app?.spec?.hostnames ?? []).length === 0 || route.phase === Phase.READY;
    return isServed ? { ...answer, summary } : { ...moved, summary: `${summary} ${moved.summary}` };
  }
  const isThere =
    route.route?.exists === true && route.route.deploymentId === current.release.template?.deploymentId;
  const state = isThere
    ? "has the traffic, but its route is not up to date"
    : "is current, but its traffic has not moved there";
  const summary = `Release ${current.number} ${state}: ${moved.summary}`;
  return { ...moved, summary };
}

/** Whether it is paused on something else than was applied. */
function isHeld(view: AppView): boolean {
  const { starting, current } = releasesOf(view);
  const { paused = false, spec } = view.app ?? {};
  if (!paused || spec === undefined) return false;
  return starting !== undefined || current === undefined || !isReleaseOf(spec, current.release);
}

const nothing = { desired: "", applied: "", live: "", differences: [] } as const;
