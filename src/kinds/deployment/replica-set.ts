// A deployment in Kubernetes: one ReplicaSet. A change of its template makes no new pods; it is what
// later pods are made from. So an older agent's ReplicaSet is taken over in place, its pods untouched.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { orderAnnotations } from "../../model/kept-order.ts";
import { withManifestHash } from "../../model/manifest-hash.ts";
import { deploymentLabels, desiredPodTemplate, identityLabels, type PodSettings } from "./pod-template.ts";
import type { DeploymentSpec } from "./spec.ts";

const minReadySeconds = 30;

export function desiredReplicaSet(spec: DeploymentSpec, settings: PodSettings): ReplicaSet {
  const annotations = orderAnnotations(spec.kept);
  return withManifestHash<ReplicaSet>({
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: spec.name,
      namespace: spec.namespace,
      labels: deploymentLabels(spec),
      ...(annotations && { annotations }),
    },
    spec: {
      replicas: spec.replicas,
      minReadySeconds,
      // A ReplicaSet's selector cannot be changed once created, so it holds identity only. One label
      // that varies between versions and every later apply of this deployment would be refused.
      selector: { matchLabels: identityLabels(spec) },
      template: desiredPodTemplate(spec, settings),
    },
  });
}
