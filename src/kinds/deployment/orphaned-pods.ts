// Finds pods of deployments that their ReplicaSet no longer controls, as `kubectl delete replicaset --cascade=orphan` leaves
// them. If the deployment is wanted, its ReplicaSet is created again and takes them over, unless another one has. If it is
// to be deleted, nothing else would end them: they would run on after krane has called the deployment gone.
//
// Their marks can be written by anybody who may create pods in the namespace. They count only against the pod itself, for an
// order to delete the deployment that it says it belongs to.
import type { Pod } from "kubernetes-types/core/v1.js";
import type { OwnedTarget } from "../../engine/plan.ts";
import { evictOrphan } from "../../engine/pod-eviction.ts";
import type { KubeApi } from "../../kube/api.ts";
import { pods, replicaSets } from "../../kube/resources.ts";
import { annotationKeys, components, labelKeys, ownLabels } from "../../model/labels.ts";
import type { Ownership } from "../../model/ownership.ts";

/** The pods of the cluster, by the deployment that they are from. */
export interface OrphanIndex {
  byIndex(index: "orphan", key: string): readonly { readonly key: string; readonly uid: string }[];
  get(podKey: string): { readonly uid: string; readonly value: { readonly orphanOf?: string } } | undefined;
}

const withoutOwner: Ownership = { kind: "unsealed", reason: "its ReplicaSet no longer controls it" };

/** The key of the deployment whose ReplicaSet made the pod; undefined if that one still has it, or if it is not krane's. */
export function orphanOf({ metadata, status }: Pod): string | undefined {
  const { generateName, labels = {}, annotations = {}, ownerReferences = [] } = metadata ?? {};
  if (metadata?.deletionTimestamp !== undefined || generateName === undefined) return undefined;
  const maker = generateName.replace(/-$/, "");
  const owner = ownerReferences.find(({ controller }) => controller);
  // If that ReplicaSet is gone, Kubernetes deletes the pod.
  if (owner?.kind === replicaSets.kind && owner.name === maker) return undefined;
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return undefined;
  const isMarked = Object.entries(ownLabels(components.deployment)).every(
    ([name, value]) => labels[name] === value,
  );
  if (!isMarked || labels[labelKeys.deploymentId] === undefined) return undefined;
  if (annotations[annotationKeys.templateHash] === undefined) return undefined;
  return `${metadata?.namespace}/${maker}`;
}

export function hasOrphans(pods: OrphanIndex, key: string): boolean {
  return pods.byIndex("orphan", key).length > 0;
}

/** To be deleted with the deployment. */
export function orphanTargets(known: OrphanIndex, key: string, api: KubeApi): readonly OwnedTarget[] {
  return known.byIndex("orphan", key).map(({ key: podKey, uid }) => {
    const [namespace = "", name = ""] = podKey.split("/");
    const ref = { namespace, name };
    const entry = {
      uid,
      contentHash: "",
      ownership: withoutOwner,
      deleting: false,
      createdAt: undefined,
      manifestHash: undefined,
    };
    return {
      kind: pods,
      ref,
      isLookedUp: false,
      live() {
        const pod = known.get(podKey);
        return pod?.uid === uid && pod.value.orphanOf === key ? entry : undefined;
      },
      entryOf: () => entry,
      keep: () => undefined,
      isStray: () => false,
      selectedLabelsOf: () => ({}),
      wrote: () => undefined,
      delete: (_uid, _send, signal) => evictOrphan(api, ref, uid, signal),
    };
  });
}
