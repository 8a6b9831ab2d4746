// Everything that one sentinel needs in the cluster, in the order in which it has to be applied, and the
// parts to delete, in the order of deleting.
//
// The apps/v1 Deployment is written first and deleted last. It is the anchor: while any other part exists
// because of krane, the Deployment does too, so whoever comes after a crash finds it and knows that the
// rest has to be completed, or taken away. The policy is applied last: in a cluster without its kind
// everything else is there by then.
import type { Deployment } from "kubernetes-types/apps/v1.js";
import type { Namespace, Secret, Service } from "kubernetes-types/core/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import type { IngressRules } from "../../model/ingress-rules.ts";
import { desiredNamespace } from "../../model/namespace.ts";
import { desiredPullSecret, isImageOfRegistry, type RegistryCredentials } from "../../model/pull-secret.ts";
import { desiredSentinelDeployment } from "./apps-deployment.ts";
import { desiredSentinelBudget, desiredSentinelService } from "./companions.ts";
import { desiredGossipPolicy, desiredGossipService } from "./gossip.ts";
import { gossipName } from "./identity.ts";
import type { SentinelRef, SentinelSpec } from "./spec.ts";

export interface SentinelSettings {
  /** As the sentinel knows it, name and platform joined: "us-east-1.aws". */
  readonly region: string;
  readonly registry?: RegistryCredentials;
}

export type DesiredSentinelObject =
  | { readonly kind: "namespace"; readonly manifest: Namespace }
  | { readonly kind: "pull-secret"; readonly manifest: Secret }
  | { readonly kind: "apps-deployment"; readonly manifest: Deployment }
  | { readonly kind: "service"; readonly manifest: Service }
  | { readonly kind: "disruption-budget"; readonly manifest: PodDisruptionBudget }
  | { readonly kind: "gossip-service"; readonly manifest: Service }
  | { readonly kind: "gossip-policy"; readonly manifest: IngressRules };

/** An object of one sentinel alone; namespace and pull secret are everybody's. */
export type SentinelPartKind = Exclude<DesiredSentinelObject["kind"], "namespace" | "pull-secret">;

export interface SentinelPart {
  readonly kind: SentinelPartKind;
  readonly namespace: string;
  readonly name: string;
}

/** `deploymentUid`: of the live apps/v1 Deployment, as the answer to its apply has it. */
export function desiredSentinel(
  spec: SentinelSpec,
  settings: SentinelSettings,
  deploymentUid: string,
): readonly DesiredSentinelObject[] {
  const { region, registry } = settings;
  const podSettings = { region, ...(registry !== undefined && { registryHost: registry.host }) };
  return [
    { kind: "namespace", manifest: desiredNamespace(spec.namespace) },
    ...pullSecrets(spec, registry),
    { kind: "apps-deployment", manifest: desiredSentinelDeployment(spec, podSettings) },
    { kind: "service", manifest: desiredSentinelService(spec, deploymentUid) },
    { kind: "disruption-budget", manifest: desiredSentinelBudget(spec, deploymentUid) },
    { kind: "gossip-service", manifest: desiredGossipService(spec) },
    { kind: "gossip-policy", manifest: desiredGossipPolicy(spec) },
  ];
}

/** All five by name: an owner reference may have been lost, and the gossip objects have none. */
export function sentinelPartsToDelete({ namespace, name }: SentinelRef): readonly SentinelPart[] {
  return [
    { kind: "gossip-policy", namespace, name: gossipName(name) },
    { kind: "gossip-service", namespace, name: gossipName(name) },
    { kind: "disruption-budget", namespace, name },
    { kind: "service", namespace, name },
    { kind: "apps-deployment", namespace, name },
  ];
}

function pullSecrets(spec: SentinelSpec, registry: RegistryCredentials | undefined): DesiredSentinelObject[] {
  if (registry === undefined || !isImageOfRegistry(spec.image.registry, registry.host)) return [];
  return [{ kind: "pull-secret", manifest: desiredPullSecret(spec.namespace, registry) }];
}
