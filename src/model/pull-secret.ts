// Builds the pull secret for the configured registry, one per namespace that runs an image from it. Pods with images from
// other registries do not get these credentials.
//
// - A deployment may name a Secret of its own instead. krane refers to it and never reads or writes it: a right to
//   Secrets whose names are not known in advance would be a right to all of them.
// - It has no manifest hash: with a hash of the password, anybody who can read the annotations could guess a weak one
//   (K7). The Secret is read by its name and compared instead.
import type { Secret } from "kubernetes-types/core/v1.js";
import { canonicalRegistry, type ImageReference, type RegistryCredentials } from "./image-reference.ts";
import { components, ownLabels } from "./labels.ts";

export const pullSecretName = "krane-registry";

/** The names of pull secrets that others provide begin with this. Nothing else may be mounted as a login by its name. */
export const ownPullSecretPrefix = `${pullSecretName}-`;

// Container runtimes identify Docker Hub, and only it, by a URL instead of its host.
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

/** Whether the live Secret contains everything that the desired one does; extra labels do not matter. */
export function isPullSecretCurrent(live: Secret, desired: Secret): boolean {
  const labels = Object.entries(desired.metadata?.labels ?? {});
  return (
    live.type === desired.type &&
    live.data?.[".dockerconfigjson"] === desired.data?.[".dockerconfigjson"] &&
    labels.every(([key, value]) => live.metadata?.labels?.[key] === value)
  );
}

export interface PulledImage {
  readonly image: ImageReference;
  /** The Secret that it names itself; empty for none. */
  readonly pullSecret?: string;
}

/** The name of the Secret that an image is pulled with; undefined if it is pulled without a login. */
export function pullSecretOf(
  { image, pullSecret = "" }: PulledImage,
  registryHost: string | undefined,
): string | undefined {
  if (pullSecret !== "") return pullSecret;
  const isOfRegistry = registryHost !== undefined && image.registry === canonicalRegistry(registryHost);
  return isOfRegistry ? pullSecretName : undefined;
}

function base64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}
