// Reconciles PodDisruptionBudgets: counts the pods that may be evicted now.
import type { Pod } from "kubernetes-types/core/v1.js";
import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from "kubernetes-types/policy/v1.js";
import { equalJson } from "../json.ts";
import { selectorMatches } from "../kinds/label-selectors.ts";
import { formatTimestamp, parseTimestamp } from "../timestamps.ts";
import type { KubeObject } from "../types.ts";
import {
  type Controller,
  type ControllerDeps,
  controllerOf,
  controllerOwner,
  createQueue,
  done,
} from "./controller.ts";
import type { WorkOutcome } from "./key-queue.ts";
import { keyOf, labelKey, labelKeysOf } from "./live-objects.ts";
import { isActive, isReady } from "./pod-state.ts";
import { share } from "./rollout.ts";
import { budgetKind, deploymentKind, podKind, replicaSetKind } from "./watched-kinds.ts";

/** An allowed eviction that has not led to a deletion after this time no longer counts. */
const evictionForgottenMs = 120_000;

export function createDisruptionController(deps: ControllerDeps): Controller {
  const { view } = deps;
  const queue = createQueue("disruption", deps);
  const selectors = new SelectorIndex();
  view.of(budgetKind).onChange((budget, previous) => {
    if (budget !== undefined) {
      selectors.set(keyOf(budget), budget.spec?.selector, budget.metadata?.namespace ?? "");
      queue.add(keyOf(budget));
    } else if (previous !== undefined) selectors.remove(keyOf(previous));
  });
  view.of(podKind).onChange((pod, previous) => {
    for (const state of [pod, previous]) {
      if (state === undefined) continue;
      for (const key of selectors.candidates(state)) {
        const budget = view.of(budgetKind).get(key);
        if (selectorMatches(budget?.spec?.selector, state.metadata?.labels)) queue.add(key);
      }
    }
  });
  for (const kind of [replicaSetKind, deploymentKind]) {
    view.of(kind as typeof replicaSetKind).onChange((owner, previous) => {
      if (owner?.spec?.replicas === previous?.spec?.replicas) return;
      const namespace = (owner ?? previous)?.metadata?.namespace ?? "";
      for (const budget of view.of(budgetKind).inNamespace(namespace)) queue.add(keyOf(budget));
    });
  }
  return controllerOf("disruption", queue, (key, signal) => reconcile(deps, key, signal));
}

async function reconcile(deps: ControllerDeps, key: string, signal: AbortSignal): Promise<WorkOutcome> {
  const budget = deps.view.of(budgetKind).get(key);
  if (budget === undefined) return done;
  const pods = deps.view.of(podKind).selectedBy(budget.spec?.selector, budget.metadata?.namespace ?? "");
  const nowMs = deps.clock.wallMs();
  const status = statusOf(deps, budget, pods, nowMs);
  if (!equalJson(status, budget.status)) {
    const stored = await deps.client.replace(budgetKind, { ...budget, status }, "status", signal);
    deps.view.of(budgetKind).observe(stored);
  }
  return status.disruptedPods === undefined ? done : { kind: "again", afterMs: evictionForgottenMs };
}

function statusOf(
  deps: ControllerDeps,
  budget: PodDisruptionBudget,
  pods: readonly Pod[],
  nowMs: number,
): PodDisruptionBudgetStatus {
  const disruptedPods = pendingEvictions(budget, pods, nowMs);
  const counted = pods.filter(({ status }) => status?.phase !== "Succeeded" && status?.phase !== "Failed");
  const { expected, desired } = wanted(deps, budget, counted);
  const healthy = counted.filter(
    (pod) => isActive(pod) && isReady(pod) && disruptedPods[pod.metadata?.name ?? ""] === undefined,
  ).length;
  const allowed = expected === 0 ? 0 : Math.max(healthy - desired, 0);
  const { generation } = budget.metadata ?? {};
  const known = (budget.status?.conditions ?? []).find(({ type }) => type === "DisruptionAllowed");
  const state = allowed > 0 ? "True" : "False";
  return {
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...(Object.keys(disruptedPods).length === 0 ? {} : { disruptedPods }),
    disruptionsAllowed: allowed,
    currentHealthy: healthy,
    desiredHealthy: desired,
    expectedPods: expected,
    conditions: [
      {
        type: "DisruptionAllowed",
        status: state,
        ...(generation === undefined ? {} : { observedGeneration: generation }),
        lastTransitionTime:
          known?.status === state ? (known.lastTransitionTime ?? "") : formatTimestamp(nowMs),
        reason: allowed > 0 ? "SufficientPods" : "InsufficientPods",
        message: "",
      },
    ],
  };
}

function pendingEvictions(
  { status }: PodDisruptionBudget,
  pods: readonly Pod[],
  nowMs: number,
): Record<string, string> {
  const live = new Set(pods.filter(isActive).map(({ metadata }) => metadata?.name ?? ""));
  const kept = Object.entries(status?.disruptedPods ?? {}).filter(
    ([name, since]) => live.has(name) && nowMs - (parseTimestamp(since) ?? 0) < evictionForgottenMs,
  );
  return Object.fromEntries(kept);
}

/** Percentages and maxUnavailable refer to the owners' replicas, an absolute minAvailable to the existing pods. */
function wanted(
  deps: ControllerDeps,
  { spec }: PodDisruptionBudget,
  pods: readonly Pod[],
): { readonly expected: number; readonly desired: number } {
  const { minAvailable, maxUnavailable } = spec ?? {};
  if (maxUnavailable !== undefined) {
    const expected = askedFor(deps, pods);
    return { expected, desired: Math.max(expected - share(maxUnavailable, expected, Math.ceil), 0) };
  }
  if (typeof minAvailable === "string") {
    const expected = askedFor(deps, pods);
    return { expected, desired: share(minAvailable, expected, Math.ceil) };
  }
  return { expected: pods.length, desired: minAvailable ?? 0 };
}

function askedFor({ view }: ControllerDeps, pods: readonly Pod[]): number {
  const sizes = new Map<string, number>();
  for (const pod of pods) {
    const set = view.of(replicaSetKind).withUid(controllerOwner(pod)?.uid ?? "");
    const owner = set === undefined ? undefined : controllerOwner(set);
    const deployment = view.of(deploymentKind).withUid(owner?.uid ?? "");
    const scaled = deployment ?? set;
    // A pod without an owner counts as one.
    sizes.set(
      scaled?.metadata?.uid ?? pod.metadata?.uid ?? "",
      scaled === undefined ? 1 : (scaled.spec?.replicas ?? 1),
    );
  }
  return [...sizes.values()].reduce((total, size) => total + size, 0);
}

// Finds the selectors that may match an object by its labels. Checking every selector on every change would take
// quadratic time.

export class SelectorIndex {
  private readonly places = new Map<string, string>();
  private readonly keysAt = new Map<string, Set<string>>();

  set(key: string, selector: LabelSelector | undefined, namespace: string): void {
    this.remove(key);
    const labels = Object.entries(selector?.matchLabels ?? {});
    // One label is enough; the one that the fewest selectors share is the most selective.
    const [place = namespace] = labels
      .map(([name, value]) => labelKey(namespace, name, value))
      .sort((left, right) => this.sizeOf(left) - this.sizeOf(right));
    this.places.set(key, place);
    this.keysAt.set(place, (this.keysAt.get(place) ?? new Set()).add(key));
  }

  remove(key: string): void {
    const place = this.places.get(key) ?? "";
    const keys = this.keysAt.get(place);
    this.places.delete(key);
    keys?.delete(key);
    if (keys?.size === 0) this.keysAt.delete(place);
  }

  /** The keys of all selectors that match the object, and of some that do not. */
  candidates(object: KubeObject): string[] {
    const places = [object.metadata?.namespace ?? "", ...labelKeysOf(object)];
    return places.flatMap((place) => [...(this.keysAt.get(place) ?? [])]);
  }

  private sizeOf(place: string): number {
    return this.keysAt.get(place)?.size ?? 0;
  }
}
