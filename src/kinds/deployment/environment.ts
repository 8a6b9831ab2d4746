// The environment that krane gives the container of a deployment.
import type { EnvVar } from "kubernetes-types/core/v1.js";
import { type SecretsSettings, tokenPath } from "./secrets-token.ts";
import type { DeploymentSpec } from "./spec.ts";
import { variables } from "./variables.ts";

export function containerVariables(spec: DeploymentSpec, secrets: SecretsSettings): EnvVar[] {
  const always = [
    { name: variables.port, value: String(spec.port) },
    { name: variables.workspaceId, value: spec.workspaceId },
    { name: variables.projectId, value: spec.projectId },
    { name: variables.environmentId, value: spec.environmentId },
    { name: variables.deploymentId, value: spec.deploymentId },
  ];
  return spec.secretsBlob === "" ? always : [...always, ...secretsVariables(spec.secretsBlob, secrets)];
}

/** What the injector in the container needs to have the blob decrypted. */
function secretsVariables(blob: string, secrets: SecretsSettings): EnvVar[] {
  // Without an endpoint of ours, the webhook that brings the injector also tells it where to ask.
  const endpoint =
    secrets.endpoint === undefined ? [] : [{ name: variables.providerEndpoint, value: secrets.endpoint }];
  return [
    { name: variables.encryptedEnvironment, value: blob },
    ...endpoint,
    { name: variables.tokenPath, value: tokenPath },
  ];
}
