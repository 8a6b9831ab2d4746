// The observed state of a route, for reports and for subscribers. This module holds types only: published types import
// it, and must not pull in the types of Kubernetes objects.

export interface ObservedRoute {
  readonly k8sNamespace: string;
  readonly k8sName: string;
  readonly routeId: string;
  /** The deployment that the Service leads to; empty for none. */
  readonly deploymentId: string;
  /** What its HTTPRoute has; none without one. */
  readonly hostnames: readonly string[];
  /** The other deployment that the HTTPRoute names; empty for none. */
  readonly nextDeploymentId: string;
  /** How many of a hundred requests that one gets. */
  readonly nextPercent: number;
  /** Why the Gateway does not send it requests; empty if it does, or without hostnames. */
  readonly gatewayProblem: string;
  /** False once nothing of the route is left in the cluster. */
  readonly exists: boolean;
}
