// The kinds that controllers work on, with their types.
import type { CustomResourceDefinition } from "kubernetes-types/apiextensions/v1.js";
import type { Deployment, ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { ConfigMap, Namespace, Node, Pod, ServiceAccount } from "kubernetes-types/core/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import { configmaps } from "../kinds/configmaps.ts";
import { customresourcedefinitions } from "../kinds/customresourcedefinitions.ts";
import { deployments } from "../kinds/deployments.ts";
import { namespaces } from "../kinds/namespaces.ts";
import { nodes } from "../kinds/nodes.ts";
import { poddisruptionbudgets } from "../kinds/poddisruptionbudgets.ts";
import { pods } from "../kinds/pods.ts";
import { replicasets } from "../kinds/replicasets.ts";
import { serviceaccounts } from "../kinds/serviceaccounts.ts";
import type { ServedResource } from "../resource.ts";
import type { KubeObject, ResourceKind } from "../types.ts";

export const podKind = kindOf<Pod>(pods);
export const nodeKind = kindOf<Node>(nodes);
export const namespaceKind = kindOf<Namespace>(namespaces);
export const serviceAccountKind = kindOf<ServiceAccount>(serviceaccounts);
export const configMapKind = kindOf<ConfigMap>(configmaps);
export const replicaSetKind = kindOf<ReplicaSet>(replicasets);
export const deploymentKind = kindOf<Deployment>(deployments);
export const budgetKind = kindOf<PodDisruptionBudget>(poddisruptionbudgets);
export const crdKind = kindOf<CustomResourceDefinition>(customresourcedefinitions);

function kindOf<T extends KubeObject>(resource: ServedResource): ResourceKind<T> {
  return resource.kind as ResourceKind<T>;
}
