// The token with which a pod asks krane to decrypt its variables. It is the only one in the pod: no
// credential for the Kubernetes API is mounted into a tenant's container, and this one is good for
// krane's audience alone, for ten minutes, and for as long as the pod lives.
import type { Volume, VolumeMount } from "kubernetes-types/core/v1.js";

export interface SecretsSettings {
  /** Whom the token is for. */
  readonly audience: string;
  /** Where pods reach krane; absent when something else tells them. */
  readonly endpoint?: string;
}

// Injectors look where Kubernetes itself would put a token.
const tokenFolder = "/var/run/secrets/kubernetes.io/serviceaccount";
export const tokenPath = `${tokenFolder}/token`;

const volumeName = "secrets-token";
// The shortest life that Kubernetes allows.
const expirationSeconds = 600;

export function tokenVolume(secrets: SecretsSettings): Volume {
  const serviceAccountToken = { audience: secrets.audience, expirationSeconds, path: "token" };
  return { name: volumeName, projected: { sources: [{ serviceAccountToken }] } };
}

export function tokenVolumeMount(): VolumeMount {
  return { name: volumeName, mountPath: tokenFolder, readOnly: true };
}
