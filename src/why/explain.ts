// Finds the one cause that explains why an object is not ready.
//
// Causes are checked in order. Once one applies, the later ones mean nothing:
// 1. The object does not exist, cannot be read or was deleted. There is nothing else to explain.
// 2. No agent is alive. What a silent agent last reported may be out of date.
// 3. What the agent reports about this version. It is first-hand, and it proves that the version has arrived, so it
//    is checked before the stream.
// 4. The version cannot arrive (the stream is down) or has not arrived (the cursor). Until then the pods run an
//    older version.
// 5. Why pods cannot run, quoted from Kubernetes. This comes with the agent's state and not with its status reports,
//    so it is valid even while reports are held back.
// 6. Reported pod counts. They are stale while reports are held back, so that is checked first.
//
// "Up to date" is never inferred here: only the control plane's own phase leads to it.
//
// Pure: the same facts give the same explanation.
import {
  type AgentView,
  ObjectView_Desired as Desired,
  ObjectKind,
  type ObjectView,
  ObjectView_Phase as Phase,
} from "../gen/krane/admin/v1/admin_pb.ts";
import {
  BreakerStatus_State as Breaker,
  type ObjectStatus,
  ObjectStatus_Outcome as Outcome,
  StreamStatus_State as Stream,
} from "../gen/krane/v1/agent_pb.ts";
import { isAboutOlderPods } from "../kinds/deployment/failing.ts";
import { kindOfObject } from "../kinds/kinds.ts";
import { viewOf } from "../kinds/object-view.ts";
import { podsText } from "../kinds/workload-view.ts";
import type { Cause, Explanation } from "./explanation.ts";
import { controllerOf, type Facts, factsOf } from "./facts.ts";
import { olderPods } from "./older-pods.ts";
import { type RemedyFacts, remedyOf } from "./remedies.ts";
import { servesKind } from "./served-kinds.ts";
import { ago, appliedText, desiredText, differencesOf, liveText, weakPodReason } from "./sides.ts";
import { heardAtMs, isSilent } from "./silence.ts";

export interface Question {
  /** What the user typed, in case the object does not exist: the kind if given, and an id or a name. */
  readonly asked: { readonly kind: ObjectKind; readonly name: string };
  readonly object: ObjectView | undefined;
  readonly agent: AgentView;
}

interface Verdict {
  readonly cause: keyof typeof summaries;
  readonly reason?: string;
  /** Replaces the default sentence for the cause. */
  readonly summary?: string;
}

export function explain({ asked, object, agent }: Question, nowMs: number): Explanation {
  if (object === undefined) return explainUnknown(asked, agent, nowMs);
  const facts = factsOf(object, agent, nowMs);
  const verdict = judge(facts);
  const { cause, reason = "" } = verdict;
  return {
    cause,
    summary: verdict.summary ?? summaryOf(cause, facts),
    desired: desiredText(facts),
    applied: appliedText(facts),
    live: liveText(facts),
    differences: cause === "all-well" || cause === "deleted" ? [] : differencesOf(facts),
    reason,
    remedy: remedyOf(cause, remedyFacts(facts)),
  };
}

const rules: readonly ((facts: Facts) => Verdict | undefined)[] = [
  judgeEnd,
  judgeAgent,
  judgeTrouble,
  judgeArrival,
  judgeGateway,
  judgePods,
  judgeNumbers,
];

function judge(facts: Facts): Verdict {
  for (const rule of rules) {
    const verdict = rule(facts);
    if (verdict !== undefined) return verdict;
  }
  if (facts.object.phase === Phase.READY) {
    const reason = facts.trouble?.reason ?? "";
    return reason === "" ? { cause: "all-well" } : { cause: "changed-by-cluster", reason };
  }
  // The agent sends its state and its status reports separately; one may have arrived without the other.
  return { cause: "starting", summary: "Applied; the agent has not reported it as ready yet." };
}

const knownPhases: ReadonlySet<Phase> = new Set([
  Phase.WAITING,
  Phase.PROGRESSING,
  Phase.READY,
  Phase.PAUSED,
  Phase.FAILED,
  Phase.DELETING,
  Phase.DELETED,
]);

function judgeEnd({ object }: Facts): Verdict | undefined {
  if (!knownPhases.has(object.phase)) return { cause: "unreadable" };
  return object.phase === Phase.DELETED ? { cause: "deleted" } : undefined;
}

function judgeAgent({ agent, nowMs }: Facts): Verdict | undefined {
  if (heardAtMs(agent) === 0n) return { cause: "agent-never-seen" };
  if (!isSilent(agent, nowMs)) return undefined;
  const summary = `The agent of region ${agent.region} was last heard ${ago(heardAtMs(agent), nowMs)}; the cluster's state may have changed since.`;
  return { cause: "agent-silent", summary };
}

function judgeTrouble({ trouble, object }: Facts): Verdict | undefined {
  if (trouble === undefined) return undefined;
  const { outcome, reason } = trouble;
  switch (outcome) {
    case Outcome.PARKED:
      return { cause: causeOfRefusal(reason), reason: withField(trouble) };
    case Outcome.CONFLICT:
      return { cause: "name-taken", reason };
    case Outcome.RETRYING:
      return { cause: causeOfAttempt(reason), reason };
    case Outcome.BLOCKED:
      return { cause: "deletion-blocked", reason };
    case Outcome.UNSPECIFIED:
      if (object.settled) return undefined;
      // Set by the control plane, not by the agent: it cannot tell from the agent's reports.
      return {
        cause: "not-settled",
        reason,
        summary: `The control plane cannot tell whether version ${object.version} was applied.`,
      };
    default:
      return undefined;
  }
}

/** Most reasons name the field; where Kubernetes reports it separately, it goes in front. */
function withField({ reason, fieldPath = "" }: ObjectStatus): string {
  return fieldPath === "" || reason.includes(fieldPath) ? reason : `${fieldPath}: ${reason}`;
}

function judgeArrival(facts: Facts): Verdict | undefined {
  const { object, controller, earlierTrouble, agent } = facts;
  if (object.settled) return undefined;
  const kind = kindOfObject(object.ref?.kind)?.name;
  if (agent.state !== undefined && kind !== undefined && !servesKind(kind, agent.state))
    return { cause: "agent-too-old" };
  const { stream } = controller ?? {};
  if (stream !== undefined && stream.state !== Stream.OPEN)
    return {
      cause: "stream-down",
      reason: [stream.lastErrorCode, stream.lastError].filter(Boolean).join(": "),
    };
  // The agent leaves a deletion unsettled until the object is gone, and reports what blocks it.
  if (object.desired === Desired.STOPPED) {
    const held = facts.trouble?.failing ?? earlierTrouble?.failing ?? "";
    return { cause: "deletion-in-progress", reason: held };
  }
  const failing = facts.trouble?.failing ?? "";
  if (failing !== "" && causeOfPods(failing) === "deletion-in-progress")
    return { cause: "deletion-in-progress", reason: failing };
  const before =
    earlierTrouble === undefined
      ? unlistedReason(facts)
      : `version ${earlierTrouble.desiredVersion}: ${earlierTrouble.reason}`;
  return before === "" ? { cause: "not-settled" } : { cause: "not-settled", reason: before };
}

function judgeGateway({ object }: Facts): Verdict | undefined {
  const { exists = false, gatewayProblem = "" } = object.route ?? {};
  return exists && gatewayProblem !== "" && object.desired === Desired.RUNNING
    ? { cause: "not-at-gateway", reason: gatewayProblem }
    : undefined;
}

// The most objects that an agent lists.
const listedMax = 100;

function unlistedReason({ agent, controller }: Facts): string {
  if (agent.troubledObjects.length < listedMax || !controller?.retrying) return "";
  return `the agent is retrying ${controller.retrying} failed ${controller.name}, more than it can list`;
}

function judgePods({ trouble, object }: Facts): Verdict | undefined {
  if (object.desired === Desired.STOPPED)
    return { cause: "deletion-in-progress", reason: trouble?.failing ?? "" };
  if (object.phase === Phase.PAUSED) return { cause: "paused" };
  const failing = trouble?.failing ?? "";
  return failing === "" ? undefined : { cause: causeOfPods(failing), reason: failing };
}

function judgeNumbers(facts: Facts): Verdict | undefined {
  const { controller, pods, object } = facts;
  if (pods.wanted === undefined) return undefined;
  if (controller?.breaker?.state === Breaker.OPEN) return { cause: "reports-held-back" };
  // No pod of the newest version is starting, so there is nothing to wait for.
  if (pods.wanted > 0 && pods.outdatedDown > 0 && pods.running + pods.outdatedDown >= pods.wanted)
    return { cause: "older-pods" };
  // Happens when the agent has more objects to list than it can, or reports the reason a moment later.
  if (pods.running < pods.wanted && pods.failed > 0)
    return {
      cause: "pods-failing",
      reason: `${pods.failed} of ${podsText(pods.wanted)}; the agent has not reported why`,
    };
  const isMissing = pods.wanted > 0 && !pods.isReported;
  if (isMissing || pods.running < pods.wanted) {
    const missing = pods.isReported
      ? `${pods.running} of ${podsText(pods.wanted)} ready so far.`
      : "no status report yet.";
    return { cause: "starting", summary: `Applied; its pods are starting: ${missing}` };
  }
  if (viewOf(object).isRollingOut(object) && pods.wanted > 0)
    return { cause: "starting", summary: "Rolling out: new pods are starting, the old ones still serve." };
  if (pods.outdated > 0 && pods.wanted > 0) return { cause: "older-pods" };
  return pods.surplus > 0 ? { cause: "surplus-pods" } : undefined;
}

/** The control plane has no such object, but the agent may still have it and hold back its deletion. */
function explainUnknown(asked: Question["asked"], agent: AgentView, nowMs: number): Explanation {
  const controller = controllerOf(asked.kind);
  const isMeant = (one: { readonly controller: string; readonly key: string; readonly id: string }) =>
    (controller === "" || one.controller === controller) &&
    (one.id === asked.name || one.key === asked.name || one.key.endsWith(`/${asked.name}`));
  const blocked = agent.blockedDeletions.find(isMeant);
  const { region } = agent;
  const unknown = { desired: "", applied: "", live: "", differences: [], reason: "" };
  if (blocked === undefined) {
    const cause = "unknown-object";
    const summary = `The control plane has no such object in region ${region}.`;
    const remedy = remedyOf(cause, { region, name: asked.name });
    return { cause, summary, ...unknown, reason: unlistedDeletions(agent, controller), remedy };
  }
  const { key, reason, suspectedPasses, firstSuspectedMs } = blocked;
  const cause = "deletion-blocked";
  const heard = isSilent(agent, nowMs) ? ` The agent was last heard ${ago(heardAtMs(agent), nowMs)}.` : "";
  const since = `for ${suspectedPasses} ${suspectedPasses === 1 ? "resync" : "resyncs"}, first ${ago(firstSuspectedMs, nowMs)}`;
  return {
    cause,
    summary: `${key} is in the cluster, but missing from the control plane (${since}); krane is holding back its deletion.${heard}`,
    ...unknown,
    live: `${key} exists`,
    reason,
    remedy: remedyOf(cause, { region, name: asked.name, controller: blocked.controller, key }),
  };
}

/** The list of held-back deletions may be truncated, so an object that is not on it may still be in the cluster. */
function unlistedDeletions({ state, blockedDeletions }: AgentView, controller: string): string {
  const isMeant = (name: string) => controller === "" || name === controller;
  const held = (state?.controllers ?? [])
    .filter(({ name }) => isMeant(name))
    .reduce((sum, each) => sum + each.blockedDeletions, 0);
  const listed = blockedDeletions.filter((each) => isMeant(each.controller)).length;
  if (listed >= held) return "";
  return `the agent is holding back ${held} deletions and lists only ${listed} of them; this object may be one of the others`;
}

function remedyFacts({ object, agent, trouble, controller }: Facts): RemedyFacts {
  const { ref, namespace, name } = object;
  return {
    region: agent.region,
    name: ref?.id ?? name,
    namespace,
    objectName: name,
    kind: ref?.kind ?? ObjectKind.UNSPECIFIED,
    controller: controllerOf(ref?.kind ?? ObjectKind.UNSPECIFIED),
    key: `${namespace}/${name}`,
    olderPods: olderPods(object),
    fieldPath: trouble?.fieldPath,
    errorCode: controller?.stream?.lastErrorCode,
  };
}

// Maps reasons from the agent and from Kubernetes to causes. The first matching pattern wins, so specific ones come
// before general ones: an exhausted quota and a terminating namespace are also 403s.

type Pattern = readonly [RegExp, Verdict["cause"]];

/** For an attempt that failed and is retried. */
const attempts: readonly Pattern[] = [
  [weakPodReason, "weak-pods"],
  [/keeps (changing|deleting|creating) |conflicts? with "/, "contested"],
  [/has no CiliumNetworkPolicy|no matches for kind|could not find the requested resource/, "missing-crd"],
  [/exceeded quota/, "quota"],
  [/being terminated|NamespaceTerminating/, "namespace-terminating"],
  [/still being deleted/, "deletion-in-progress"],
  [/admission webhook|denied the request/, "refused-by-cluster"],
  [/: 401\b/, "unauthenticated"],
  [/: 403\b|[Ff]orbidden/, "forbidden"],
];

/** For pods that cannot run. */
const pods: readonly Pattern[] = [
  [/is being deleted and waits for finalizer/, "deletion-in-progress"],
  [
    /^no Gateway is configured|^the cluster has no HTTPRoute|^the HTTPRoutes of the cluster/,
    "not-at-gateway",
  ],
  [/FailedCreate\b.*exceeded quota/, "quota"],
  [/FailedCreate\b/, "pods-refused"],
  [/ImagePullBackOff|ErrImagePull|InvalidImageName|ErrImageNeverPull|ImageInspectError/, "image-pull"],
  [/CrashLoopBackOff/, "crash-loop"],
  [/CreateContainerConfigError|CreateContainerError/, "container-config"],
  [/Unschedulable|SchedulingGated/, "unschedulable"],
  [/NodeLost/, "node-lost"],
  [/ProgressDeadlineExceeded/, "rollout-stuck"],
];

function causeOfAttempt(reason: string): Verdict["cause"] {
  return first(attempts, reason) ?? "retrying";
}

/** A reason from krane's own validation contains no HTTP status. */
function causeOfRefusal(reason: string): Verdict["cause"] {
  if (reason.startsWith("the cluster lowers the isolation of ")) return "isolation-lowered";
  // With other problems beside it, upgrading the agent would not be enough.
  if (/^\w+ is \d+, which this version of krane does not know$/.test(reason)) return "agent-too-old";
  return /: 4\d\d\b/.test(reason) ? "refused-by-cluster" : "invalid-spec";
}

function causeOfPods(failing: string): Verdict["cause"] {
  if (isAboutOlderPods(failing)) return "older-pods-failing";
  return first(pods, failing) ?? "pods-failing";
}

function first(patterns: readonly Pattern[], text: string): Verdict["cause"] | undefined {
  return patterns.find(([pattern]) => pattern.test(text))?.[1];
}

// One sentence for each cause.

type Summary = string | ((facts: Facts) => string);

/** Those of apps are in explain-app.ts. */
const summaries: Readonly<
  Record<Exclude<Cause, "release-failed" | "releasing" | "releases-paused">, Summary>
> = {
  "unknown-object": "The control plane has no such object.",
  unreadable: "A newer krane wrote its spec or phase, and this one cannot read it.",
  deleted: "Deleted on request.",
  "agent-never-seen": ({ agent }) => `No agent of region ${agent.region} has ever connected.`,
  "agent-silent": ({ agent }) => `The agent of region ${agent.region} stopped sending heartbeats.`,
  "deletion-blocked": "The agent is holding back its deletion.",
  "deletion-in-progress": ({ object, trouble }) =>
    (trouble?.failing ?? "") === ""
      ? `${object.namespace}/${object.name} is being deleted.`
      : `${object.namespace}/${object.name} is being deleted, but something blocks it.`,
  "invalid-spec": ({ trouble }) =>
    (trouble?.appliedVersion ?? 0n) === 0n
      ? "The spec is invalid; nothing is applied until it changes."
      : "The spec is invalid; krane keeps the last good version until it changes.",
  "refused-by-cluster": "The cluster rejected it.",
  "name-taken": ({ object }) =>
    `The name ${object.namespace}/${object.name} is taken by another object in the cluster.`,
  "isolation-lowered":
    "The cluster lowers the isolation of its pods, so krane keeps it from getting new ones.",
  "weak-pods": "One of its pods is less isolated than its template, and krane replaces it.",
  contested: "Another client keeps undoing what krane applies.",
  "missing-crd": "A CustomResourceDefinition that it needs is not installed in the cluster.",
  "not-at-gateway": "The Gateway does not send the requests for its hostnames to it.",
  quota: "A resource quota of its namespace is exhausted.",
  "namespace-terminating": ({ object }) =>
    `Namespace ${object.namespace} is being deleted, so nothing can be created in it.`,
  unauthenticated: "The cluster rejects the agent's credentials.",
  forbidden: "krane lacks a permission in the cluster.",
  retrying: "The last attempt failed; the agent retries.",
  "agent-too-old": ({ agent, object, trouble }) => {
    const isTooOld = `The agent of region ${agent.region} is too old for`;
    if (trouble?.outcome !== Outcome.PARKED)
      return `${isTooOld} ${kindOfObject(object.ref?.kind)?.plural ?? "it"}.`;
    const rest =
      trouble.appliedVersion === 0n ? "nothing is applied" : "the last good version stays in force";
    return `${isTooOld} a value in the spec; ${rest} until it is upgraded.`;
  },
  "stream-down": ({ object }) =>
    `The agent is not connected to the control plane and has not received version ${object.version}.`,
  "not-settled": ({ object, controller }) => {
    const { waiting = 0, inFlight = 0, delayed = 0 } = controller?.queue ?? {};
    const queue = `${waiting} waiting, ${inFlight} in flight, ${delayed} delayed`;
    return `The agent has not applied version ${object.version} yet (its queue: ${queue}).`;
  },
  paused: "Up to date, scaled to 0 pods.",
  "older-pods-failing": "Pods from an older version cannot run, and krane does not replace running pods.",
  "image-pull": "Its image cannot be pulled.",
  "crash-loop": "The container is crash-looping.",
  "container-config": "Its container cannot be created.",
  unschedulable: "Its pods do not fit on any node.",
  "node-lost": "The node of its pods does not answer, so it is unknown whether they run.",
  "pods-refused": "The cluster refuses to create its pods.",
  "rollout-stuck": "The rollout is stuck: its new pods do not become ready, and the old ones keep running.",
  "pods-failing": "Its pods cannot run.",
  "reports-held-back": "The agent has paused its status reports because too many failed.",
  starting: "Applied; its pods are starting.",
  "older-pods": ({ pods }) =>
    `Applied, but ${pods.outdated} of its pods ${pods.outdated === 1 ? "is" : "are"} from an older version: krane does not replace running pods.`,
  "surplus-pods": ({ pods }) => `Applied, but it still has ${podsText(pods.surplus)} too many.`,
  "changed-by-cluster": "Up to date, except for fields that the cluster itself sets.",
  "all-well": "Up to date.",
};

function summaryOf(cause: keyof typeof summaries, facts: Facts): string {
  const summary = summaries[cause];
  return typeof summary === "string" ? summary : summary(facts);
}
