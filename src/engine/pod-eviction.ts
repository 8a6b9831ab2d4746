// Evicts one pod, by its uid. An eviction, not a deletion, so that the API server applies the PodDisruptionBudgets that
// cover the pod; without one, it deletes the pod.
import type { KubeApi } from "../kube/api.ts";
import { KubeApiError } from "../kube/errors.ts";
import { evictions, pods } from "../kube/resources.ts";
import type { ActionRecords } from "./action-records.ts";
import { isConflict, isNotFound, isRefusal } from "./classify.ts";
import type { PodGroup, WeakPod } from "./pod-replacement.ts";

// What krane's template has, by Kubernetes' default. A pod from an edited template may ask for years to end, and would run on.
const gracePeriodSeconds = 30;

export interface PodEvictionDeps {
  readonly api: Pick<KubeApi, "create">;
  readonly actions: Pick<ActionRecords, "recordEviction">;
}

export interface EvictionOutcome {
  readonly kind: "replacing";
  readonly reason: string;
}

export async function evictPod(
  { pod, reason }: { readonly pod: WeakPod; readonly reason: string },
  group: PodGroup,
  key: string,
  { api, actions }: PodEvictionDeps,
  signal: AbortSignal,
): Promise<EvictionOutcome> {
  const { ref, uid, weakness } = pod;
  const undo = group.replacement.note(group);
  try {
    const eviction = { metadata: { ...ref }, deleteOptions: { gracePeriodSeconds, preconditions: { uid } } };
    await api.create(evictions, eviction, { subresource: "eviction", ref }, signal);
  } catch (error) {
    // After any other failure the pod may have been evicted.
    const isKept = isRefusal(error) || isBudgetRefusal(error);
    if (isKept) undo();
    const about = `pod ${ref.name} is less isolated than its template (${weakness.what})`;
    if (isConflict(error) || isNotFound(error)) return { kind: "replacing", reason: `${about}; it is gone` };
    if (!isBudgetRefusal(error)) throw error;
    return {
      kind: "replacing",
      reason: `${about}; a PodDisruptionBudget does not allow its eviction: ${error.message}`,
    };
  }
  actions.recordEviction(key, { kind: pods, ref, uid }, weakness);
  return { kind: "replacing", reason };
}

function isBudgetRefusal(error: unknown): error is KubeApiError {
  if (!(error instanceof KubeApiError) || error.status !== 429) return false;
  return error.causes.some(({ reason }) => reason === "DisruptionBudget");
}
