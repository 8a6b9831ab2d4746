// Handles pods/<name>/eviction: a delete that respects the pod's disruption budget.
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import { keyOf, type Scope, timestampOf } from "../core.ts";
import { deleteObject } from "../delete.ts";
import { isObject, type JsonObject, listAt, stringAt, valueAt } from "../json.ts";
import { matchesLabelSelector } from "../selectors.ts";
import { createdBody, StatusError } from "../status-error.ts";
import type { StoredObject } from "../store.ts";
import { liveObject } from "../update.ts";

const budgets = { group: "policy", plural: "poddisruptionbudgets" };

export function evictPod(scope: Scope, body: unknown): JsonObject {
  const pod = liveObject(scope);
  const options = valueAt(body, "deleteOptions");
  const asked: JsonObject = isObject(options) ? options : {};
  const dryRun = scope.request.query?.["dryRun"] === "All" || listAt(asked, "dryRun").includes("All");
  if (needsBudget(pod)) {
    const matching = budgetsOf(scope, pod);
    if (matching.length > 1) {
      throw new StatusError(
        500,
        "InternalError",
        "Internal error occurred: This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        {
          causes: [
            {
              message:
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            },
          ],
        },
      );
    }
    const [budget] = matching;
    if (budget !== undefined && !isSparedByPolicy(budget, pod)) takeFromBudget(scope, budget, dryRun);
  }
  const seconds = valueAt(asked, "gracePeriodSeconds");
  deleteObject(scope, {
    uid: stringAt(asked, "preconditions", "uid"),
    resourceVersion: stringAt(asked, "preconditions", "resourceVersion"),
    propagation: stringAt(asked, "propagationPolicy"),
    graceSeconds: typeof seconds === "number" ? seconds : undefined,
    dryRun,
  });
  return createdBody();
}

/** Pods that do not run, or are already being deleted, do not affect availability. */
function needsBudget(pod: StoredObject): boolean {
  const phase = stringAt(pod, "status", "phase") ?? "";
  const isIdle = ["Succeeded", "Failed", "Pending"].includes(phase);
  return !isIdle && stringAt(pod, "metadata", "deletionTimestamp") === undefined;
}

function budgetsOf({ core, namespace }: Scope, pod: StoredObject): StoredObject[] {
  const labels = valueAt(pod, "metadata", "labels");
  return core.store.list(budgets, namespace).filter((object) => {
    const { spec } = object as unknown as PodDisruptionBudget;
    return (
      spec?.selector !== undefined && matchesLabelSelector(spec.selector, isObject(labels) ? labels : {})
    );
  });
}

/** A pod that is not ready may be evicted if the budget's policy allows it, or if enough others are healthy. */
function isSparedByPolicy(object: StoredObject, pod: StoredObject): boolean {
  const isReady = listAt(pod, "status", "conditions").some(
    (condition) => stringAt(condition, "type") === "Ready" && stringAt(condition, "status") === "True",
  );
  if (isReady) return false;
  const budget = object as unknown as PodDisruptionBudget;
  if (budget.spec?.unhealthyPodEvictionPolicy === "AlwaysAllow") return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {};
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy;
}

function takeFromBudget(scope: Scope, object: StoredObject, dryRun: boolean): void {
  const budget = object as unknown as PodDisruptionBudget;
  const name = budget.metadata?.name ?? "";
  const {
    observedGeneration = 0,
    disruptionsAllowed = 0,
    desiredHealthy = 0,
    currentHealthy = 0,
  } = budget.status ?? {};
  if (observedGeneration < (budget.metadata?.generation ?? 0)) {
    throw tooManyRequests(`The disruption budget ${name} is still being processed by the server.`, 10);
  }
  if (disruptionsAllowed <= 0) {
    throw tooManyRequests(
      `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
    );
  }
  if (dryRun) return;
  const status = valueAt(object, "status");
  const disrupted = valueAt(object, "status", "disruptedPods");
  const next: JsonObject = {
    ...(isObject(status) ? status : {}),
    disruptionsAllowed: disruptionsAllowed - 1,
    disruptedPods: { ...(isObject(disrupted) ? disrupted : {}), [scope.name]: timestampOf(scope.core) },
  };
  scope.core.store.put({ ...keyOf(scope, name), ...budgets }, { ...object, status: next });
}

function tooManyRequests(why: string, retryAfterSeconds?: number): StatusError {
  const message = "Cannot evict pod as it would violate the pod's disruption budget.";
  return new StatusError(429, "TooManyRequests", message, {
    causes: [{ reason: "DisruptionBudget", message: why }],
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}
