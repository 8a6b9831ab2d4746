// The credentials of the configured registry as a Secret, one per namespace that runs an image of
// that registry. An image of any other registry is left alone: its pods must not carry credentials
// that are not theirs.
//
// - It bears no hash: a hash of a manifest with a password in it would let a weak password be guessed
//   by whoever sees the annotations (K7). The Secret is read by its one name and compared instead.
import type { Secret } from "kubernetes-types/core/v1.js";
import { canonicalRegistry, type RegistryCredentials } from "./image-reference.ts";
import { components, ownLabels } from "./labels.ts";

export const pullSecretName = "krane-registry";

// Docker Hub alone is known to runtimes by an address instead of its host.
const dockerHubKey = "https://index.docker.io/v1/";

export function desiredPullSecret(namespace: string, registry: RegistryCredentials): Secret {
  const password = registry.password.reveal();
  const auth = base64(`${registry.username}:${password}`);
  const host = canonicalRegistry(registry.host);
  const key = host === "docker.io" ? dockerHubKey : host;
  const config = { auths: { [key]: { username: registry.username, password, auth } } };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: pullSecretName, namespace, labels: ownLabels(components.pullSecret) },
    type: "kubernetes.io/dockerconfigjson",
    data: { ".dockerconfigjson": base64(JSON.stringify(config)) },
  };
}

/** Whether the live Secret already says everything that the desired one says; more labels do no harm. */
export function isPullSecretCurrent(live: Secret, desired: Secret): boolean {
  const labels = Object.entries(desired.metadata?.labels ?? {});
  return (
    live.type === desired.type &&
    live.data?.[".dockerconfigjson"] === desired.data?.[".dockerconfigjson"] &&
    labels.every(([key, value]) => live.metadata?.labels?.[key] === value)
  );
}

export function isImageOfRegistry(imageRegistry: string, registryHost: string): boolean {
  return imageRegistry === canonicalRegistry(registryHost);
}

function base64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}
