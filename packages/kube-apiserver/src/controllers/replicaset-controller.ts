// Reconciles ReplicaSets: creates and deletes pods to match the replicas, and writes the status.
import type { ReplicaSet, ReplicaSetStatus } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { equalJson } from "../json.ts";
import { selectorMatches } from "../kinds/label-selectors.ts";
import { StatusError } from "../status-error.ts";
import { formatTimestamp } from "../timestamps.ts";
import { refOf } from "./cluster-client.ts";
import {
  type Controller,
  type ControllerDeps,
  controllerOf,
  controllerOwner,
  controllerReference,
  createQueue,
  done,
  isControlledBy,
} from "./controller.ts";
import type { WorkOutcome } from "./key-queue.ts";
import { keyOf } from "./live-objects.ts";
import { availableAtMs, conditionOf, isActive, isFinished, isReady, restartsOf } from "./pod-state.ts";
import { podKind, replicaSetKind } from "./watched-kinds.ts";

/** Pods created and deleted in one pass at most, so that one huge set does not delay the others. */
const burstMax = 500;

export function createReplicaSetController(deps: ControllerDeps): Controller {
  const { view } = deps;
  const queue = createQueue("replicaset", deps);
  view.of(replicaSetKind).onChange((set, previous) => {
    const changed = set ?? previous;
    if (changed !== undefined) queue.add(keyOf(changed));
  });
  view.of(podKind).onChange((pod, previous) => {
    for (const state of [pod, previous]) {
      const owner = state === undefined ? undefined : controllerOwner(state);
      if (owner?.kind === "ReplicaSet") queue.add(`${state?.metadata?.namespace}/${owner.name}`);
    }
    // A pod without a controller may be adopted by any set that selects it.
    if (pod === undefined || controllerOwner(pod) !== undefined || !isActive(pod)) return;
    for (const set of view.of(replicaSetKind).inNamespace(pod.metadata?.namespace ?? "")) {
      if (selects(set, pod)) queue.add(keyOf(set));
    }
  });
  return controllerOf("replicaset", queue, (key, signal) => reconcile(deps, key, signal));
}

async function reconcile(deps: ControllerDeps, key: string, signal: AbortSignal): Promise<WorkOutcome> {
  const set = deps.view.of(replicaSetKind).get(key);
  if (set === undefined) return done;
  const pods = deps.view.of(podKind);
  const own = await claimPods(deps, set, signal);
  const active = own.filter((pod) => isActive(pod) && !pods.isLeaving(pod));
  let failure: StatusError | undefined;
  if (!deps.view.of(replicaSetKind).isLeaving(set)) failure = await scale(deps, set, active, signal);
  const after = pods.ownedBy(set.metadata?.uid ?? "").filter((pod) => !isFinished(pod));
  const nextMs = await writeStatus(deps, set, after, failure, signal);
  if (failure !== undefined) throw failure;
  return nextMs === undefined ? done : { kind: "again", afterMs: nextMs };
}

function selects({ spec, metadata }: ReplicaSet, pod: Pod): boolean {
  return (
    metadata?.namespace === pod.metadata?.namespace && selectorMatches(spec?.selector, pod.metadata?.labels)
  );
}

/** Adopts matching pods without a controller, and releases its own that no longer match. */
async function claimPods(deps: ControllerDeps, set: ReplicaSet, signal: AbortSignal): Promise<Pod[]> {
  const pods = deps.view.of(podKind);
  const own = pods.ownedBy(set.metadata?.uid ?? "").filter((pod) => isControlledBy(pod, set));
  const kept: Pod[] = [];
  for (const pod of own) {
    if (selects(set, pod)) kept.push(pod);
    else await rewriteOwners(deps, pod, ({ uid }) => uid !== set.metadata?.uid, [], signal);
  }
  if (deps.view.of(replicaSetKind).isLeaving(set)) return kept;
  for (const pod of pods.ownedBy("")) {
    if (!selects(set, pod) || !isActive(pod) || pods.isLeaving(pod)) continue;
    const reference = controllerReference(replicaSetKind, set);
    kept.push(await rewriteOwners(deps, pod, () => true, [reference], signal));
  }
  return kept;
}

type OwnerReferences = NonNullable<NonNullable<Pod["metadata"]>["ownerReferences"]>;

async function rewriteOwners(
  deps: ControllerDeps,
  pod: Pod,
  keeps: (owner: OwnerReferences[number]) => boolean,
  added: OwnerReferences,
  signal: AbortSignal,
): Promise<Pod> {
  const ownerReferences = [...(pod.metadata?.ownerReferences ?? []).filter(keeps), ...added];
  const changed = { ...pod, metadata: { ...pod.metadata, ownerReferences } };
  const stored = await deps.client.replace(podKind, changed, "", signal);
  deps.view.of(podKind).observe(stored);
  return stored;
}

async function scale(
  deps: ControllerDeps,
  set: ReplicaSet,
  active: readonly Pod[],
  signal: AbortSignal,
): Promise<StatusError | undefined> {
  const pods = deps.view.of(podKind);
  const missing = (set.spec?.replicas ?? 1) - active.length;
  for (let made = 0; made < Math.min(missing, burstMax); made++) {
    try {
      pods.observe(await deps.client.create(podKind, podOf(set), signal));
    } catch (error) {
      if (error instanceof StatusError) return error;
      throw error;
    }
  }
  if (missing >= 0) return undefined;
  for (const pod of rankForRemoval(active).slice(0, Math.min(-missing, burstMax))) {
    await deps.client.remove(podKind, refOf(pod), { uid: pod.metadata?.uid }, signal);
    pods.condemn(pod);
  }
  return undefined;
}

function podOf(set: ReplicaSet): Pod {
  const { template } = set.spec ?? {};
  const { labels, annotations, finalizers } = template?.metadata ?? {};
  const prefix = `${set.metadata?.name}-`;
  return {
    metadata: {
      generateName: prefix,
      namespace: set.metadata?.namespace ?? "",
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(finalizers === undefined ? {} : { finalizers }),
      ownerReferences: [controllerReference(replicaSetKind, set)],
    },
    ...(template?.spec === undefined ? {} : { spec: template.spec }),
  };
}

/** Returns the milliseconds until the next pod becomes available. */
async function writeStatus(
  deps: ControllerDeps,
  set: ReplicaSet,
  own: readonly Pod[],
  failure: StatusError | undefined,
  signal: AbortSignal,
): Promise<number | undefined> {
  const nowMs = deps.clock.wallMs();
  const active = own.filter((pod) => !deps.view.of(podKind).isLeaving(pod));
  const terminatingReplicas = own.length - active.length;
  const times = active.flatMap((pod) => availableAtMs(pod, set.spec?.minReadySeconds ?? 0) ?? []);
  const available = times.filter((time) => time <= nowMs).length;
  const status = { ...statusOf(set, active, available, failure, nowMs), terminatingReplicas };
  if (!equalJson(status, set.status)) {
    const stored = await deps.client.replace(replicaSetKind, { ...set, status }, "status", signal);
    deps.view.of(replicaSetKind).observe(stored);
  }
  const later = times.filter((time) => time > nowMs);
  return later.length === 0 ? undefined : Math.min(...later) - nowMs;
}

function statusOf(
  set: ReplicaSet,
  active: readonly Pod[],
  available: number,
  failure: StatusError | undefined,
  nowMs: number,
): ReplicaSetStatus {
  const labels = Object.entries(set.spec?.template?.metadata?.labels ?? {});
  const ready = active.filter(isReady).length;
  const labelled = active.filter(({ metadata }) =>
    labels.every(([key, value]) => metadata?.labels?.[key] === value),
  ).length;
  const others = (set.status?.conditions ?? []).filter(({ type }) => type !== "ReplicaFailure");
  const known = (set.status?.conditions ?? []).find(({ type }) => type === "ReplicaFailure");
  const conditions =
    failure === undefined
      ? others
      : [
          ...others,
          // Keeps the first message: later ones differ only in the names of pods that were never created, and each would
          // be a change that triggers another reconcile.
          known ?? {
            type: "ReplicaFailure",
            status: "True",
            lastTransitionTime: formatTimestamp(nowMs),
            reason: "FailedCreate",
            message: failure.message,
          },
        ];
  return {
    replicas: active.length,
    // Zeros are omitted, as in the real server's types, because otherwise every write would look like a change.
    ...(labelled === 0 ? {} : { fullyLabeledReplicas: labelled }),
    ...(ready === 0 ? {} : { readyReplicas: ready }),
    ...(available === 0 ? {} : { availableReplicas: available }),
    ...(set.metadata?.generation === undefined ? {} : { observedGeneration: set.metadata.generation }),
    ...(conditions.length === 0 ? {} : { conditions }),
  };
}

// Ranks the pods that a ReplicaSet deletes first: the least useful, then the youngest.

const costAnnotation = "controller.kubernetes.io/pod-deletion-cost";

/** The pods to delete first come first. */
export function rankForRemoval(pods: readonly Pod[]): Pod[] {
  const crowding = new Map<string, number>();
  for (const { spec } of pods) {
    const node = spec?.nodeName ?? "";
    crowding.set(node, (crowding.get(node) ?? 0) + 1);
  }
  const worth = (pod: Pod): readonly (number | string)[] => [
    pod.spec?.nodeName ? 1 : 0,
    { Pending: 0, Unknown: 1 }[pod.status?.phase ?? ""] ?? 2,
    isReady(pod) ? 1 : 0,
    Number(pod.metadata?.annotations?.[costAnnotation] ?? 0),
    -(crowding.get(pod.spec?.nodeName ?? "") ?? 0),
    // Of two ready pods, the one that has been ready longer stays. ISO times sort as text.
    inverted(conditionOf(pod, "Ready")?.lastTransitionTime),
    -restartsOf(pod),
    inverted(pod.metadata?.creationTimestamp),
    pod.metadata?.name ?? "",
  ];
  return pods
    .map((pod) => ({ pod, worth: worth(pod) }))
    .sort((left, right) => compare(left.worth, right.worth))
    .map(({ pod }) => pod);
}

/** Later times come first. */
function inverted(timestamp = ""): number {
  return -Number(timestamp.replaceAll(/\D/g, ""));
}

function compare(left: readonly (number | string)[], right: readonly (number | string)[]): number {
  for (const [index, value] of left.entries()) {
    const other = right[index];
    if (other !== undefined && value !== other) return value < other ? -1 : 1;
  }
  return 0;
}
