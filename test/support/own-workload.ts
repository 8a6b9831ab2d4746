// A pod and its ReplicaSet as krane makes them and the API server gives them back.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { desiredReplicaSet } from "../../src/kinds/deployment/pod-template.ts";
import { deploymentSpec } from "./deployment-messages.ts";

const desired = desiredReplicaSet(deploymentSpec({ deploymentId: "d_1", environmentId: "env_1" }), {
  secrets: { audience: "krane" },
});

export function ownReplicaSet(): ReplicaSet {
  const managedFields = [{ manager: "krane", operation: "Apply" }];
  return { ...desired, metadata: { ...desired.metadata, uid: "rs-uid", managedFields } };
}

export function ownPod(): Pod {
  const { metadata, spec } = desired.spec?.template ?? {};
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "rs-uid", controller: true };
  return {
    metadata: { ...metadata, name: "web-1", namespace: "acme", uid: "pod-uid", ownerReferences: [owner] },
    spec: { containers: [], ...spec, serviceAccountName: "default" },
    status: { phase: "Running" },
  };
}
