// Builds all objects of a sentinel in the order in which they are applied, and lists the parts to delete in the order
// in which they are deleted.
//
// The apps/v1 Deployment is applied first and deleted last. While any other part that krane applied exists, so does
// the Deployment: after a crash krane finds it and completes or deletes the rest. The policy is applied last, so that
// a cluster without CiliumNetworkPolicy has everything else by then.
import type { Deployment } from "kubernetes-types/apps/v1.js";
import type { Namespace, PodTemplateSpec, Secret, Service } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import type { RegistryCredentials } from "../../model/image-reference.ts";
import type { IngressRules } from "../../model/ingress-rules.ts";
import { orderAnnotations } from "../../model/kept-order.ts";
import { components } from "../../model/labels.ts";
import { withManifestHash } from "../../model/manifest-hash.ts";
import { desiredNamespace } from "../../model/namespace.ts";
import { desiredPullSecret, pullSecretName, pullSecretOf } from "../../model/pull-secret.ts";
import {
  gossipName,
  gossipPort,
  identityLabels,
  peerLabels,
  sentinelLabels,
  sentinelPort,
} from "./identity.ts";
import { desiredSentinelTemplate, type SentinelPodSettings } from "./pod-template.ts";
import type { SentinelRef, SentinelSpec } from "./spec.ts";

export interface SentinelSettings {
  /** As the sentinel expects it, name and platform joined: "us-east-1.aws". */
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

/** An object that belongs to one sentinel; the namespace and the pull secret are shared. */
export type SentinelPartKind = Exclude<DesiredSentinelObject["kind"], "namespace" | "pull-secret">;

export interface SentinelPart {
  readonly kind: SentinelPartKind;
  readonly namespace: string;
  readonly name: string;
}

/** `deploymentUid`: the uid of the live apps/v1 Deployment, from the response to its apply. */
export function desiredSentinel(
  spec: SentinelSpec,
  settings: SentinelSettings,
  deploymentUid: string,
): readonly DesiredSentinelObject[] {
  return [
    { kind: "namespace", manifest: desiredNamespace(spec.namespace) },
    ...pullSecrets(spec, settings.registry),
    { kind: "apps-deployment", manifest: desiredSentinelDeployment(spec, podSettingsOf(settings)) },
    { kind: "service", manifest: desiredSentinelService(spec, deploymentUid) },
    { kind: "disruption-budget", manifest: desiredSentinelBudget(spec, deploymentUid) },
    { kind: "gossip-service", manifest: desiredGossipService(spec) },
    { kind: "gossip-policy", manifest: desiredGossipPolicy(spec) },
  ];
}

export function podSettingsOf({ region, registry }: SentinelSettings): SentinelPodSettings {
  return { region, ...(registry !== undefined && { registryHost: registry.host }) };
}

/** Lists all five by name: an owner reference may have been lost, and the gossip objects have no owner. */
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
  if (registry === undefined || pullSecretOf(spec, registry.host) !== pullSecretName) return [];
  return [{ kind: "pull-secret", manifest: desiredPullSecret(spec.namespace, registry) }];
}

const minReadySeconds = 30;

/** The apps/v1 Deployment of a sentinel. The other objects depend on it, and status is read from it. */
export function desiredSentinelDeployment(
  spec: SentinelSpec,
  settings: SentinelPodSettings,
  kept?: PodTemplateSpec,
): Deployment {
  const annotations = orderAnnotations(spec.kept);
  return withManifestHash<Deployment>({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: {
      name: spec.name,
      namespace: spec.namespace,
      labels: sentinelLabels(spec, components.sentinel),
      ...(annotations && { annotations }),
    },
    spec: {
      replicas: spec.replicas,
      minReadySeconds,
      // Immutable once created, so it holds identity only.
      selector: { matchLabels: identityLabels(spec) },
      // A sentinel with one replica must not be without a pod while that pod is replaced.
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: kept ?? desiredSentinelTemplate(spec, settings),
    },
  });
}

/** `deploymentUid`: the uid of the live apps/v1 Deployment, which changes when the Deployment is recreated. */
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
      // With one replica, maxUnavailable: 1 would allow evicting the only pod. With several, minAvailable: 1 would be
      // met while most pods are gone; with none, it would never be met.
      ...(spec.replicas === 1 ? { minAvailable: 1 } : { maxUnavailable: 1 }),
      selector: { matchLabels: identityLabels(spec) },
      // A pod that is not ready serves no traffic, and must not block the drain of its node forever.
      unhealthyPodEvictionPolicy: "AlwaysAllow",
    },
  });
}

/**
 * The metadata of the Service and the PodDisruptionBudget. The apps/v1 Deployment owns both, so Kubernetes deletes them
 * with it even if krane does not. Owner and owned objects share a namespace: Kubernetes treats an owner in another
 * namespace as absent, and collects the objects that it owns.
 */
function ownedMetadata(spec: SentinelSpec, deploymentUid: string): ObjectMeta {
  return {
    name: spec.name,
    namespace: spec.namespace,
    labels: sentinelLabels(spec, components.sentinel),
    ownerReferences: [{ apiVersion: "apps/v1", kind: "Deployment", name: spec.name, uid: deploymentUid }],
  };
}

/** A headless Service that resolves to all sentinels of the environment, so that they find each other. */
export function desiredGossipService(spec: SentinelSpec): Service {
  return withManifestHash<Service>({
    apiVersion: "v1",
    kind: "Service",
    metadata: gossipMetadata(spec),
    spec: {
      type: "ClusterIP",
      clusterIP: "None",
      selector: peerLabels(spec),
      ports: [
        { name: "gossip-lan", port: gossipPort, targetPort: gossipPort, protocol: "TCP" },
        { name: "gossip-lan-udp", port: gossipPort, targetPort: gossipPort, protocol: "UDP" },
      ],
    },
  });
}

/**
 * Lets the sentinels of an environment reach each other. A selector without a namespace selects within the policy's own
 * namespace, so no tenant pod can pass for a peer.
 */
export function desiredGossipPolicy(spec: SentinelSpec): IngressRules {
  const peers = { matchLabels: peerLabels(spec) };
  const port = String(gossipPort);
  return withManifestHash<IngressRules>({
    apiVersion: "cilium.io/v2",
    kind: "CiliumNetworkPolicy",
    metadata: gossipMetadata(spec),
    spec: {
      endpointSelector: peers,
      ingress: [
        {
          fromEndpoints: [peers],
          toPorts: [
            {
              ports: [
                { port, protocol: "TCP" },
                { port, protocol: "UDP" },
              ],
            },
          ],
        },
      ],
    },
  });
}

/**
 * The metadata of the gossip Service and the gossip policy. Both select the whole environment, so no sentinel's
 * Deployment owns them: deleting one sentinel must not take them from the others.
 */
function gossipMetadata(spec: SentinelSpec): IngressRules["metadata"] {
  return {
    name: gossipName(spec.name),
    namespace: spec.namespace,
    labels: sentinelLabels(spec, components.gossipLan),
  };
}
