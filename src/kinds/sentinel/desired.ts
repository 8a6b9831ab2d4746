// Everything that one sentinel needs in the cluster, in the order in which it has to be applied, and the
// parts to delete, in the order of deleting.
//
// The apps/v1 Deployment is written first and deleted last. It is the anchor: while any other part exists
// because of krane, the Deployment does too, so whoever comes after a crash finds it and knows that the
// rest has to be completed, or taken away. The policy is applied last: in a cluster without its kind
// everything else is there by then.
import type { Deployment } from "kubernetes-types/apps/v1.js";
import type { Namespace, Secret, Service } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import type { RegistryCredentials } from "../../model/image-reference.ts";
import type { IngressRules } from "../../model/ingress-rules.ts";
import { orderAnnotations } from "../../model/kept-order.ts";
import { components } from "../../model/labels.ts";
import { withManifestHash } from "../../model/manifest-hash.ts";
import { desiredNamespace } from "../../model/names.ts";
import { desiredPullSecret, isImageOfRegistry } from "../../model/pull-secret.ts";
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

// The apps/v1 Deployment of a sentinel: the object that the others hang on, and that status is read from.

const minReadySeconds = 30;

export function desiredSentinelDeployment(spec: SentinelSpec, settings: SentinelPodSettings): Deployment {
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
      // It cannot be changed once created, so it holds identity only.
      selector: { matchLabels: identityLabels(spec) },
      // A sentinel of one replica must not be without any while it is replaced.
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: desiredSentinelTemplate(spec, settings),
    },
  });
}

// The Service and the PodDisruptionBudget of a sentinel. Both are owned by its apps/v1 Deployment and go
// with it even where nobody deletes them. Owner and owned share a namespace: Kubernetes takes an owner
// of another one for absent and collects what it owns.

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

// What the sentinels of an environment need to find and reach each other: a headless Service that
// resolves to all of them, and a policy that lets them talk. Both select the whole environment, so
// neither is owned by one sentinel's Deployment: they must not vanish under the others with it.

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

/** A selector without a namespace means that of the policy, so no pod of a tenant can pass for a peer. */
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

function gossipMetadata(spec: SentinelSpec): IngressRules["metadata"] {
  return {
    name: gossipName(spec.name),
    namespace: spec.namespace,
    labels: sentinelLabels(spec, components.gossipLan),
  };
}
