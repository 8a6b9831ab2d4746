// Loads the service account credentials that Kubernetes mounts into every pod. The kubelet replaces the token file long
// before the token expires, so reading it once a minute is enough to avoid a 401.
import { openCaFile, type TrustedCa } from "../config/ca-file.ts";
import { type CredentialDeps, cachedCredential, credentialError, type KubeEndpoint } from "./credentials.ts";

export const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount";

export const credentialFileMaxAgeMs = 60_000;

export interface InClusterAddress {
  readonly host: string;
  readonly port: string;
}

export async function loadInClusterEndpoint(
  address: InClusterAddress,
  deps: CredentialDeps,
  signal: AbortSignal,
): Promise<KubeEndpoint> {
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  return {
    server: `https://${host}:${address.port}`,
    ca: await openCredentialCa(`${serviceAccountDir}/ca.crt`, deps, signal),
    credentials: cachedCredential(deps.clock, async (inner) => ({
      credential: { authorization: await readBearerToken(`${serviceAccountDir}/token`, deps, inner) },
      staleAtMs: deps.clock.nowMs() + credentialFileMaxAgeMs,
    })),
  };
}

/** Opens a CA file that is read again when it changes: a cluster's CA is renewed while its pods run. */
export function openCredentialCa(
  path: string,
  deps: CredentialDeps,
  signal: AbortSignal,
): Promise<TrustedCa> {
  const readTextFile = (at: string, inner: AbortSignal) => readCredentialFile(at, deps, inner);
  return openCaFile(path, { readTextFile, nowMs: () => deps.clock.nowMs() }, signal);
}

export async function readBearerToken(
  path: string,
  deps: CredentialDeps,
  signal: AbortSignal,
): Promise<string> {
  const token = (await readCredentialFile(path, deps, signal)).trim();
  if (token === "") throw credentialError(`the token file ${path} is empty`);
  return `Bearer ${token}`;
}

export async function readCredentialFile(
  path: string,
  deps: CredentialDeps,
  signal: AbortSignal,
): Promise<string> {
  try {
    return await deps.readTextFile(path, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw credentialError(`cannot read ${path}`, error);
  }
}
