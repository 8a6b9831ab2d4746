// Mounts the token with which a pod asks krane to decrypt its variables. It is the only token in the pod: a tenant's
// container gets no credential for the Kubernetes API. It is valid only for krane's audience, for ten minutes, and only
// while the pod exists.
import type { Volume, VolumeMount } from "kubernetes-types/core/v1.js";

export interface SecretsSettings {
  readonly audience: string;
  /** Where pods reach krane; absent if the webhook that adds the injector sets it. */
  readonly endpoint?: string;
}

// Injectors expect the token where Kubernetes itself would mount one.
const tokenFolder = "/var/run/secrets/kubernetes.io/serviceaccount";
export const tokenPath = `${tokenFolder}/token`;

export const tokenVolumeName = "secrets-token";
// The shortest lifetime that Kubernetes allows.
const expirationSeconds = 600;

export function tokenVolume(secrets: SecretsSettings): Volume {
  const serviceAccountToken = { audience: secrets.audience, expirationSeconds, path: "token" };
  return { name: tokenVolumeName, projected: { sources: [{ serviceAccountToken }] } };
}

export function tokenVolumeMount(): VolumeMount {
  return { name: tokenVolumeName, mountPath: tokenFolder, readOnly: true };
}
