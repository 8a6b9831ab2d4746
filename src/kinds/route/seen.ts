// The observed state of a route, for reports and for subscribers. This module holds types only: published types import
// it, and must not pull in the types of Kubernetes objects.

export interface ObservedRoute {
  readonly k8sNamespace: string;
  readonly k8sName: string;
  readonly routeId: string;
  /** The deployment that the Service leads to; empty for none. */
  readonly deploymentId: string;
  /** False once nothing of the route is left in the cluster. */
  readonly exists: boolean;
}
