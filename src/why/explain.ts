// Why an object is not as it is wanted: the one cause that stands in the way first, in plain words.
//
// The causes are looked for in an order in which each makes those behind it meaningless:
// 1. Whether the object exists at all, can be read, or is over: then nothing else is left to explain.
// 2. Whether anybody acts. What an agent said before it fell silent may be wrong by now.
// 3. What the agent says about this very version. It is first-hand, and it proves that the order has arrived, so it
//    stands before the state of the stream.
// 4. Whether the order can arrive (the stream), and has arrived (the cursor). What runs until then is about an
//    earlier version.
// 5. Why pods cannot run, in the words of Kubernetes. It comes with the agent's state and not with the reports, so
//    it holds also where those are held back.
// 6. Numbers that were reported. They are worth nothing while reports are held back, which is said first.
//
// That all is well is nobody's conclusion here: the control plane says so, or it is not said.
//
// Pure: the same facts give the same answer.
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
import { viewOf } from "../kinds/object-view.ts";
import { podsText } from "../kinds/workload-view.ts";
import type { Cause, Explanation } from "./explanation.ts";
import { controllerOf, type Facts, factsOf, silentMs } from "./facts.ts";
import { olderPods } from "./older-pods.ts";
import { causeOfAttempt, causeOfPods, causeOfRefusal } from "./reasons.ts";
import { type RemedyFacts, remedyOf } from "./remedies.ts";
import { ago, appliedText, desiredText, differencesOf, liveText } from "./sides.ts";
import { summaryOf } from "./summaries.ts";

export interface Question {
  /** What was asked for, for the case that there is no such object: a kind where one was named, an id or a name. */
  readonly asked: { readonly kind: ObjectKind; readonly name: string };
  readonly object: ObjectView | undefined;
  readonly agent: AgentView;
}

interface Verdict {
  readonly cause: Cause;
  readonly reason?: string;
  /** Instead of the usual sentence for the cause. */
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
  judgePods,
  judgeNumbers,
];

function judge(facts: Facts): Verdict {
  for (const rule of rules) {
    const verdict = rule(facts);
    if (verdict !== undefined) return verdict;
  }
  if (facts.object.phase === Phase.READY) return { cause: "all-well" };
  // Reports and state of the agent come one after the other, and somebody may ask in between.
  return { cause: "starting", summary: "It is applied, and not yet reported to be as it should." };
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
  const { heartbeatAtMs, stateAtMs, region } = agent;
  const heardAtMs = heartbeatAtMs > stateAtMs ? heartbeatAtMs : stateAtMs;
  if (heardAtMs === 0n) return { cause: "agent-never-seen" };
  if (nowMs - Number(heardAtMs) <= silentMs) return undefined;
  const summary = `The agent of region ${region} was last heard ${ago(heardAtMs, nowMs)}; what is known of the cluster is as old.`;
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
      // Not the agent's word but that of a control plane which cannot know it from the agent.
      return {
        cause: "not-settled",
        reason,
        summary: `The control plane cannot tell whether version ${object.version} was carried out.`,
      };
    default:
      return undefined;
  }
}

/** The field is named by the reason as a rule; where Kubernetes names it beside, it is put in front. */
function withField({ reason, fieldPath = "" }: ObjectStatus): string {
  return fieldPath === "" || reason.includes(fieldPath) ? reason : `${fieldPath}: ${reason}`;
}

function judgeArrival(facts: Facts): Verdict | undefined {
  const { object, controller, earlierTrouble } = facts;
  if (object.settled) return undefined;
  const { stream } = controller ?? {};
  if (stream !== undefined && stream.state !== Stream.OPEN)
    return {
      cause: "stream-down",
      reason: [stream.lastErrorCode, stream.lastError].filter(Boolean).join(": "),
    };
  // The agent keeps such an order unsettled until the object is gone, and says what holds it.
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

// What an agent lists at most.
const listedMax = 100;

function unlistedReason({ agent, controller }: Facts): string {
  if (agent.troubledObjects.length < listedMax || !controller?.retrying) return "";
  return `${controller.retrying} objects of ${controller.name} failed and are tried again, more than the agent can list`;
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
  // Nothing of the newest description is on its way up, so there is nothing to wait for.
  if (pods.wanted > 0 && pods.outdatedDown > 0 && pods.running + pods.outdatedDown >= pods.wanted)
    return { cause: "older-pods" };
  // Also seen while the agent has more to list than it can, or says why only a moment later.
  if (pods.running < pods.wanted && pods.failed > 0)
    return {
      cause: "pods-failing",
      reason: `${pods.failed} of ${podsText(pods.wanted)}; the agent has not said why`,
    };
  const isMissing = pods.wanted > 0 && !pods.isReported;
  if (isMissing || pods.running < pods.wanted) {
    const missing = pods.isReported
      ? `${pods.running} of ${podsText(pods.wanted)} ready so far.`
      : "nothing was reported yet.";
    return { cause: "starting", summary: `It is applied, and its pods are on their way up: ${missing}` };
  }
  if (viewOf(object).isRollingOut(object) && pods.wanted > 0)
    return { cause: "starting", summary: "Its pods are being replaced; those of before still serve." };
  if (pods.outdated > 0 && pods.wanted > 0) return { cause: "older-pods" };
  return pods.surplus > 0 ? { cause: "surplus-pods" } : undefined;
}

/** The control plane does not know it, but the agent may: then it holds back its deletion. */
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
  const since = `for ${suspectedPasses} ${suspectedPasses === 1 ? "pass" : "passes"}, first ${ago(firstSuspectedMs, nowMs)}`;
  return {
    cause,
    summary: `${key} is in the cluster, and the control plane has not known it ${since}; krane does not dare to delete it.`,
    ...unknown,
    live: `${key} is there`,
    reason,
    remedy: remedyOf(cause, { region, name: asked.name, controller: blocked.controller, key }),
  };
}

/** That an object is not on a list which was cut does not say that it is not in the cluster. */
function unlistedDeletions({ state, blockedDeletions }: AgentView, controller: string): string {
  const isMeant = (name: string) => controller === "" || name === controller;
  const held = (state?.controllers ?? [])
    .filter(({ name }) => isMeant(name))
    .reduce((sum, each) => sum + each.blockedDeletions, 0);
  const listed = blockedDeletions.filter((each) => isMeant(each.controller)).length;
  if (listed >= held) return "";
  return `the agent holds back ${held} deletions of what the control plane does not know, and lists ${listed} of them: this may be one of the others`;
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
