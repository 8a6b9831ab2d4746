// Evicts one pod, by its uid. An eviction, not a deletion, so that the API server applies the PodDisruptionBudgets that
// cover the pod; without one, it deletes the pod.
import type { DeleteOutcome, KubeApi } from "../kube/api.ts";
import { KubeApiError } from "../kube/errors.ts";
import { evictions, pods } from "../kube/resources.ts";
import type { ObjectRef } from "../kube/types.ts";
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
  const undo = group.replacement.note(group, pod);
  try {
    await sendEviction(api, ref, uid, signal);
  } catch (error) {
    const budget = objectionOfBudgets(error);
    // After any other failure the pod may have been evicted.
    if (isRefusal(error) || budget !== undefined) undo();
    const about = `pod ${ref.name} is less isolated than its template (${weakness.what})`;
    if (isConflict(error) || isNotFound(error)) return { kind: "replacing", reason: `${about}; it is gone` };
    if (budget === undefined) throw error;
    return { kind: "replacing", reason: `${about}; ${budget}` };
  }
  actions.recordEviction(key, { kind: pods, ref, uid }, weakness);
  return { kind: "replacing", reason };
}

/**
 * Evicts a pod that an order to delete its deployment concerns, and that its ReplicaSet no longer controls. krane may evict
 * pods, but not delete them.
 */
export async function evictOrphan(
  api: Pick<KubeApi, "create">,
  ref: ObjectRef,
  uid: string,
  signal: AbortSignal,
): Promise<DeleteOutcome> {
  try {
    await sendEviction(api, ref, uid, signal);
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return { kind: "absent" };
    const budget = objectionOfBudgets(error);
    if (budget === undefined) throw error;
    const what = `pod ${ref.name} runs without its ReplicaSet; ${budget}`;
    throw new KubeApiError("refused", what, { status: 429, cause: error });
  }
  return { kind: "deleting" };
}

async function sendEviction(
  api: Pick<KubeApi, "create">,
  ref: ObjectRef,
  uid: string,
  signal: AbortSignal,
): Promise<void> {
  const eviction = { metadata: { ...ref }, deleteOptions: { gracePeriodSeconds, preconditions: { uid } } };
  await api.create(evictions, eviction, { subresource: "eviction", ref }, signal);
}

/** Why PodDisruptionBudgets forbid the eviction, with the name of the budget; undefined after any other failure. */
function objectionOfBudgets(error: unknown): string | undefined {
  if (!(error instanceof KubeApiError)) return undefined;
  const { status, causes, message } = error;
  // Kubernetes answers with 500 and without a reason, as if it had failed itself.
  if (status === 500 && message.includes("more than one PodDisruptionBudget"))
    return "more than one PodDisruptionBudget covers it, and Kubernetes evicts no such pod";
  const cause = status === 429 ? causes.find(({ reason }) => reason === "DisruptionBudget") : undefined;
  return cause && `a PodDisruptionBudget does not allow its eviction: ${cause.message ?? message}`;
}
