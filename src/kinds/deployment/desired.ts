// Builds all objects of one deployment, for `krane render` and golden files, in the order in which an agent applies
// them. The agent itself plans them step by step in controller.ts, because it shares the ingress policy between the
// deployments of an environment.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Namespace, Secret } from "kubernetes-types/core/v1.js";
import type { RegistryCredentials } from "../../model/image-reference.ts";
import type { IngressRules } from "../../model/ingress-rules.ts";
import { desiredNamespace } from "../../model/namespace.ts";
import { desiredPullSecret, pullSecretName, pullSecretOf } from "../../model/pull-secret.ts";
import { desiredIngressPolicy } from "./ingress-policy.ts";
import { desiredReplicaSet, type RuntimeClass, runtimeClassName } from "./pod-template.ts";
import type { SecretsSettings } from "./secrets-token.ts";
import type { DeploymentSpec } from "./spec.ts";

export interface DeploymentSettings {
  readonly secrets: SecretsSettings;
  readonly registry?: RegistryCredentials;
  readonly runtimeClass?: RuntimeClass;
}

export type DesiredObject =
  | { readonly kind: "namespace"; readonly manifest: Namespace }
  | { readonly kind: "pull-secret"; readonly manifest: Secret }
  | { readonly kind: "ingress-policy"; readonly manifest: IngressRules }
  | { readonly kind: "replica-set"; readonly manifest: ReplicaSet };

/** `otherPorts`: the ports of the other deployments of the same environment in the same namespace. */
export function desiredDeployment(
  spec: DeploymentSpec,
  settings: DeploymentSettings,
  otherPorts: Iterable<number>,
): readonly DesiredObject[] {
  const { secrets, registry, runtimeClass = runtimeClassName } = settings;
  const podSettings = {
    secrets,
    runtimeClass,
    ...(registry !== undefined && { registryHost: registry.host }),
  };
  return [
    { kind: "namespace", manifest: desiredNamespace(spec.namespace) },
    ...pullSecrets(spec, registry),
    { kind: "ingress-policy", manifest: desiredIngressPolicy(spec, [spec.port, ...otherPorts]) },
    { kind: "replica-set", manifest: desiredReplicaSet(spec, podSettings) },
  ];
}

function pullSecrets(spec: DeploymentSpec, registry: RegistryCredentials | undefined): DesiredObject[] {
  if (registry === undefined || pullSecretOf(spec, registry.host) !== pullSecretName) return [];
  return [{ kind: "pull-secret", manifest: desiredPullSecret(spec.namespace, registry) }];
}
