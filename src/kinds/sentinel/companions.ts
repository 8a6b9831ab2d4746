// The Service and the PodDisruptionBudget of a sentinel. Both are owned by its apps/v1 Deployment and go
// with it even where nobody deletes them. Owner and owned share a namespace: Kubernetes takes an owner
// of another one for absent and collects what it owns.
import type { Service } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import { components } from "../../model/labels.ts";
import { withManifestHash } from "../../model/manifest-hash.ts";
import { identityLabels, sentinelLabels, sentinelPort } from "./identity.ts";
import type { SentinelSpec } from "./spec.ts";

/** `deploymentUid`: of the live apps/v1 Deployment. One that was created anew has another uid. */
export function desiredSentinelService(spec: SentinelSpec, deploymentUid: string): Service {
  return withManifestHash<Service>({
    apiVersion: "v1",
    kind: "Service",
    metadata: ownedMetadata(spec, deploymentUid),
    spec: {
      type: "ClusterIP",
      selector: identityLabels(spec),
      ports: [{ port: sentinelPort, targetPort: sentinelPort, protocol: "TCP" }],
    },
  });
}

export function desiredSentinelBudget(spec: SentinelSpec, deploymentUid: string): PodDisruptionBudget {
  return withManifestHash<PodDisruptionBudget>({
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: ownedMetadata(spec, deploymentUid),
    spec: {
      // Allowing one pod to be away would allow the only pod to be away. For more than one pod, or
      // none, a minimum would be met while most of them are gone, or never.
      ...(spec.replicas === 1 ? { minAvailable: 1 } : { maxUnavailable: 1 }),
      selector: { matchLabels: identityLabels(spec) },
      // A pod that is not ready protects nobody, and must not hold up the drain of its node for ever.
      unhealthyPodEvictionPolicy: "AlwaysAllow",
    },
  });
}

function ownedMetadata(spec: SentinelSpec, deploymentUid: string): ObjectMeta {
  return {
    name: spec.name,
    namespace: spec.namespace,
    labels: sentinelLabels(spec, components.sentinel),
    ownerReferences: [{ apiVersion: "apps/v1", kind: "Deployment", name: spec.name, uid: deploymentUid }],
  };
}
