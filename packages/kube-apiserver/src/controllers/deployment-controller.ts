// Reconciles apps/v1 Deployments: one ReplicaSet per template, and rolling updates between them.

import { createHash } from "node:crypto";
import type { Deployment, ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { PodTemplateSpec } from "kubernetes-types/core/v1.js";
import { equalJson, isObject } from "../json.ts";
import { selectorMatches } from "../kinds/label-selectors.ts";
import { refOf } from "./cluster-client.ts";
import {
  type Controller,
  type ControllerDeps,
  controllerOf,
  controllerOwner,
  controllerReference,
  createQueue,
  done,
} from "./controller.ts";
import { deploymentStatus, progressDeadlineMs } from "./deployment-status.ts";
import type { WorkOutcome } from "./key-queue.ts";
import { keyOf } from "./live-objects.ts";
import { isFinished } from "./pod-state.ts";
import { limitsOf, nextNewSize, nextOldSizes, sizeOf } from "./rollout.ts";
import { deploymentKind, podKind, replicaSetKind } from "./watched-kinds.ts";

const revisionAnnotation = "deployment.kubernetes.io/revision";
const desiredAnnotation = "deployment.kubernetes.io/desired-replicas";
const maxAnnotation = "deployment.kubernetes.io/max-replicas";

export function createDeploymentController(deps: ControllerDeps): Controller {
  const { view } = deps;
  const queue = createQueue("deployment", deps);
  view.of(deploymentKind).onChange((deployment, previous) => {
    const changed = deployment ?? previous;
    if (changed !== undefined) queue.add(keyOf(changed));
  });
  view.of(replicaSetKind).onChange((set, previous) => {
    for (const state of [set, previous]) {
      const owner = state === undefined ? undefined : controllerOwner(state);
      if (owner?.kind === "Deployment") queue.add(`${state?.metadata?.namespace}/${owner.name}`);
    }
  });
  // Recreate waits for the last pod of the old sets, which no ReplicaSet status reports.
  view.of(podKind).onChange((pod, previous) => {
    if (pod !== undefined || previous === undefined) return;
    const set = view
      .of(replicaSetKind)
      .get(`${previous.metadata?.namespace}/${controllerOwner(previous)?.name}`);
    const owner = set === undefined ? undefined : controllerOwner(set);
    if (owner?.kind === "Deployment") queue.add(`${previous.metadata?.namespace}/${owner.name}`);
  });
  return controllerOf("deployment", queue, (key, signal) => reconcile(deps, key, signal));
}

async function reconcile(deps: ControllerDeps, key: string, signal: AbortSignal): Promise<WorkOutcome> {
  const live = deps.view.of(deploymentKind);
  const deployment = live.get(key);
  if (deployment === undefined || live.isLeaving(deployment)) return done;
  const sets = await claimSets(deps, deployment, signal);
  const found = sets.find((set) => hasTemplateOf(set, deployment));
  const old = sets.filter((set) => set !== found);
  const isPaused = deployment.spec?.paused === true;
  const newSet = found ?? (isPaused ? undefined : await createSet(deps, deployment, old, signal));
  if (isPaused) await scalePaused(deps, deployment, newSet ?? sets.at(-1), signal);
  else if (newSet !== undefined) await roll(deps, deployment, newSet, old, signal);
  await writeStatus(deps, deployment, signal);
  if (!isPaused) await dropHistory(deps, deployment, old, signal);
  const current = live.get(key);
  const deadline = current === undefined ? undefined : progressDeadlineMs(current);
  return deadline === undefined
    ? done
    : { kind: "again", afterMs: Math.max(deadline - deps.clock.wallMs(), 1_000) };
}

/** Oldest first. */
function setsOf({ view }: ControllerDeps, deployment: Deployment): ReplicaSet[] {
  return view
    .of(replicaSetKind)
    .ownedBy(deployment.metadata?.uid ?? "")
    .sort((left, right) => revisionOf(left) - revisionOf(right));
}

async function claimSets(
  deps: ControllerDeps,
  deployment: Deployment,
  signal: AbortSignal,
): Promise<ReplicaSet[]> {
  const sets = deps.view.of(replicaSetKind);
  for (const set of sets.ownedBy("")) {
    const isOurs =
      set.metadata?.namespace === deployment.metadata?.namespace &&
      !sets.isLeaving(set) &&
      selectorMatches(deployment.spec?.selector, set.metadata?.labels);
    if (!isOurs) continue;
    const ownerReferences = [controllerReference(deploymentKind, deployment)];
    await writeSet(deps, { ...set, metadata: { ...set.metadata, ownerReferences } }, signal);
  }
  return setsOf(deps, deployment);
}

function revisionOf({ metadata }: ReplicaSet | Deployment): number {
  return Number(metadata?.annotations?.[revisionAnnotation] ?? 0);
}

function hasTemplateOf({ spec }: ReplicaSet, deployment: Deployment): boolean {
  const left = spec?.template;
  const right = deployment.spec?.template;
  return left !== undefined && right !== undefined && isSameTemplate(left, right);
}

async function createSet(
  deps: ControllerDeps,
  deployment: Deployment,
  old: readonly ReplicaSet[],
  signal: AbortSignal,
): Promise<ReplicaSet | undefined> {
  const { spec, metadata } = deployment;
  if (spec === undefined) return undefined;
  const hash = templateHash(spec.template);
  const labels = { ...spec.template.metadata?.labels, [templateHashLabel]: hash };
  const { matchLabels, ...selector } = spec.selector;
  const blank: ReplicaSet = {
    metadata: {
      name: `${metadata?.name}-${hash}`,
      namespace: metadata?.namespace ?? "",
      labels,
      annotations: { [revisionAnnotation]: String(Math.max(0, ...old.map(revisionOf)) + 1) },
      ownerReferences: [controllerReference(deploymentKind, deployment)],
    },
    spec: {
      replicas: 0,
      ...(spec.minReadySeconds === undefined ? {} : { minReadySeconds: spec.minReadySeconds }),
      selector: { ...selector, matchLabels: { ...matchLabels, [templateHashLabel]: hash } },
      template: { ...spec.template, metadata: { ...spec.template.metadata, labels } },
    },
  };
  const isRecreate = spec.strategy?.type === "Recreate" && old.some((set) => sizeOf(set) > 0);
  const size = isRecreate ? 0 : nextNewSize(limitsOf(deployment), blank, old);
  const created = await deps.client.create(replicaSetKind, resized(deployment, blank, size), signal);
  deps.view.of(replicaSetKind).observe(created);
  return created;
}

function resized(deployment: Deployment, set: ReplicaSet, replicas: number): ReplicaSet {
  const limits = limitsOf(deployment);
  const annotations = {
    ...set.metadata?.annotations,
    [desiredAnnotation]: String(limits.replicas),
    [maxAnnotation]: String(limits.replicas + limits.maxSurge),
  };
  if (set.spec === undefined) return set;
  const { minReadySeconds = 0 } = deployment.spec ?? {};
  const { minReadySeconds: _, ...spec } = set.spec;
  return {
    ...set,
    metadata: { ...set.metadata, annotations },
    spec: { ...spec, replicas, ...(minReadySeconds === 0 ? {} : { minReadySeconds }) },
  };
}

async function writeSet(deps: ControllerDeps, set: ReplicaSet, signal: AbortSignal): Promise<void> {
  const known = deps.view.of(replicaSetKind).get(keyOf(set));
  if (known !== undefined && equalJson(known, set)) return;
  deps.view.of(replicaSetKind).observe(await deps.client.replace(replicaSetKind, set, "", signal));
}

async function scalePaused(
  deps: ControllerDeps,
  deployment: Deployment,
  set: ReplicaSet | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (set !== undefined)
    await writeSet(deps, resized(deployment, set, limitsOf(deployment).replicas), signal);
}

async function roll(
  deps: ControllerDeps,
  deployment: Deployment,
  newSet: ReplicaSet,
  old: readonly ReplicaSet[],
  signal: AbortSignal,
): Promise<void> {
  const limits = limitsOf(deployment);
  const current = await promoted(deps, newSet, old, signal);
  if (deployment.spec?.strategy?.type === "Recreate") {
    for (const set of old) if (sizeOf(set) > 0) await writeSet(deps, resized(deployment, set, 0), signal);
    if (old.some((set) => hasPods(deps, set))) return;
    await writeSet(deps, resized(deployment, current, limits.replicas), signal);
    return;
  }
  const size = nextNewSize(limits, current, old);
  await writeSet(deps, resized(deployment, current, size), signal);
  // Scaling down depends on the available pods, which scaling up is about to change.
  if (size !== sizeOf(current)) return;
  for (const [set, smaller] of nextOldSizes(limits, current, old)) {
    await writeSet(deps, resized(deployment, set, smaller), signal);
  }
}

/** A rollback finds its template in an old set, which becomes the newest. */
async function promoted(
  deps: ControllerDeps,
  newSet: ReplicaSet,
  old: readonly ReplicaSet[],
  signal: AbortSignal,
): Promise<ReplicaSet> {
  const latest = Math.max(0, ...old.map(revisionOf));
  if (revisionOf(newSet) > latest) return newSet;
  const annotations = { ...newSet.metadata?.annotations, [revisionAnnotation]: String(latest + 1) };
  await writeSet(deps, { ...newSet, metadata: { ...newSet.metadata, annotations } }, signal);
  return deps.view.of(replicaSetKind).get(keyOf(newSet)) ?? newSet;
}

function hasPods({ view }: ControllerDeps, set: ReplicaSet): boolean {
  const pods = view.of(podKind).ownedBy(set.metadata?.uid ?? "");
  return (set.status?.replicas ?? 0) > 0 || pods.some((pod) => !isFinished(pod));
}

async function writeStatus(deps: ControllerDeps, deployment: Deployment, signal: AbortSignal): Promise<void> {
  const sets = setsOf(deps, deployment);
  const newSet = sets.find((set) => hasTemplateOf(set, deployment));
  const old = sets.filter((set) => set !== newSet);
  const status = deploymentStatus(deployment, newSet, old, deps.clock.wallMs());
  const revision = newSet?.metadata?.annotations?.[revisionAnnotation];
  const annotations = {
    ...deployment.metadata?.annotations,
    ...(revision && { [revisionAnnotation]: revision }),
  };
  const isSame =
    equalJson(status, deployment.status) && equalJson(annotations, deployment.metadata?.annotations ?? {});
  if (isSame) return;
  const changed = { ...deployment, metadata: { ...deployment.metadata, annotations }, status };
  deps.view.of(deploymentKind).observe(await deps.client.replace(deploymentKind, changed, "status", signal));
}

async function dropHistory(
  deps: ControllerDeps,
  deployment: Deployment,
  old: readonly ReplicaSet[],
  signal: AbortSignal,
): Promise<void> {
  const sets = deps.view.of(replicaSetKind);
  const idle = old.filter(
    (set) => sizeOf(set) === 0 && (set.status?.replicas ?? 0) === 0 && !sets.isLeaving(set),
  );
  const excess = idle.length - (deployment.spec?.revisionHistoryLimit ?? 10);
  for (const set of idle.slice(0, Math.max(excess, 0))) {
    await deps.client.remove(replicaSetKind, refOf(set), { uid: set.metadata?.uid }, signal);
    sets.condemn(set);
  }
}

// Distinguishes the pods of different templates. Any stable hash works, because it is not compared with another server's.
const templateHashLabel = "pod-template-hash";

const alphabet = "bcdfghjklmnpqrstvwxz2456789";
const length = 10;

function templateHash(template: PodTemplateSpec): string {
  const digest = createHash("sha256")
    .update(JSON.stringify(sorted(template)))
    .digest();
  return Array.from(digest.subarray(0, length), (byte) => alphabet[byte % alphabet.length]).join("");
}

/** Whether both templates create the same pods, ignoring the hash label. */
function isSameTemplate(left: PodTemplateSpec, right: PodTemplateSpec): boolean {
  return JSON.stringify(sorted(withoutHash(left))) === JSON.stringify(sorted(withoutHash(right)));
}

function withoutHash(template: PodTemplateSpec): PodTemplateSpec {
  const { [templateHashLabel]: _, ...labels } = template.metadata?.labels ?? {};
  return { ...template, metadata: { ...template.metadata, labels } };
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const keys = Object.keys(value).sort();
  return keys.map((key) => [key, sorted(value[key])]);
}
