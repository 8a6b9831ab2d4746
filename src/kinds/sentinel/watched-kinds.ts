// Watches the apps/v1 Deployments of sentinels and their Services, disruption budgets and policies, and maps each
// change to the keys to reconcile and report.
import type { Deployment } from "kubernetes-types/apps/v1.js";
import { type ChangedKeys, isContentChange } from "../../engine/controller-definition.ts";
import { WatchedKind, type WatchedKindDeps } from "../../engine/watched-kind.ts";
import type { CacheChange } from "../../kube/object-cache.ts";
import {
  appsDeployments,
  ciliumNetworkPolicies,
  podDisruptionBudgets,
  services,
} from "../../kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../kube/types.ts";
import type { Seal } from "../../model/seal.ts";
import { selectedLabels, sentinelSelection } from "./identity.ts";
import { sentinelContainerName } from "./pod-template.ts";
import {
  projectSentinelCompanion,
  projectSentinelDeployment,
  type SentinelCompanionProjection,
  type SentinelDeploymentProjection,
  type SentinelObjectProjection,
} from "./projections.ts";

export type SentinelDeployments = WatchedKind<Deployment, SentinelDeploymentProjection>;
export type SentinelCompanions = WatchedKind<KubeObject, SentinelCompanionProjection>;

export interface SentinelKinds {
  readonly deployments: SentinelDeployments;
  /** Both those for traffic and those for gossip. */
  readonly services: SentinelCompanions;
  readonly budgets: SentinelCompanions;
  readonly policies: SentinelCompanions;
}

// How sentinels are restarted: `kubectl rollout restart`, and the platform's reloader, which their template asks for.
const restartMarks = [
  "spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]",
  "spec.template.metadata.annotations[reloader.stakater.com/last-reloaded-from]",
  `spec.template.spec.containers[${sentinelContainerName}].env[STAKATER_*]`,
];

/** Policies are not required: without their CRD the controller still starts, and its status shows what is missing. */
export function watchSentinelKinds(deps: WatchedKindDeps): SentinelKinds {
  const companions = (kind: ResourceKind, required: boolean): SentinelCompanions =>
    new WatchedKind<KubeObject, SentinelCompanionProjection>(
      {
        kind,
        selection: sentinelSelection,
        project: (object) => projectSentinelCompanion(object, kind, deps.seal),
        owned: true,
        selectedLabelsOf: (object) => selectedLabelsOf(object, kind, deps.seal),
        required,
      },
      deps,
    );
  return {
    deployments: new WatchedKind<Deployment, SentinelDeploymentProjection>(
      {
        kind: appsDeployments,
        selection: sentinelSelection,
        project: (object) => projectSentinelDeployment(object, deps.seal),
        owned: true,
        selectedLabelsOf: (object) => selectedLabelsOf(object, appsDeployments, deps.seal),
        toleratedFields: restartMarks,
        required: true,
      },
      deps,
    ),
    services: companions(services, true),
    budgets: companions(podDisruptionBudgets, true),
    policies: companions(ciliumNetworkPolicies, false),
  };
}

/** The key of the sentinel that an object belongs to, by its name: `namespace/name` of the apps/v1 Deployment. */
export function sentinelKeyOf({ namespace, sentinelName }: SentinelObjectProjection): string {
  return `${namespace}/${sentinelName}`;
}

export function deploymentKeys(change: CacheChange<SentinelDeploymentProjection>): ChangedKeys {
  const keys = [change.key];
  return { reconcile: isContentChange(change) ? keys : [], report: keys };
}

export function companionKeys(change: CacheChange<SentinelCompanionProjection>): ChangedKeys {
  if (!isContentChange(change)) return { reconcile: [], report: [] };
  const { value } = change.kind === "deleted" ? change.before : change.after;
  return { reconcile: [sentinelKeyOf(value)], report: [] };
}

function selectedLabelsOf(
  { metadata }: KubeObject,
  kind: ResourceKind,
  seal: Seal,
): Readonly<Record<string, string>> {
  const reading = seal.read(kind, metadata);
  const id = reading.kind === "valid" ? reading.ids.id : undefined;
  return id === undefined ? {} : selectedLabels(metadata?.name ?? "", id);
}
