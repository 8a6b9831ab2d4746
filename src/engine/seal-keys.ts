// Loads what seals are made with: the id of the cluster, and the keys. The keys come from the configuration or from a
// Secret in krane's own namespace, which tenants can neither read nor write. krane creates that Secret once and never
// changes it: with new keys it would not recognize its own objects.
import { randomBytes } from "node:crypto";
import type { Namespace, Secret } from "kubernetes-types/core/v1.js";
import type { KubeApi } from "../kube/api.ts";
import { KubeApiError } from "../kube/errors.ts";
import { namespaces, secrets } from "../kube/resources.ts";
import { components, fieldManager, ownLabels } from "../model/labels.ts";
import { createSealKey, Seal, type SealKey, sealKeyBytes } from "../model/seal.ts";
import { isConflict, isNotFound } from "./classify.ts";

export const sealSecretName = "krane-seal";
/** Its uid identifies the cluster. */
export const clusterIdNamespace = "kube-system";
/** One key per line, in base64. */
const keysEntry = "keys";

export interface SealSource {
  readonly region: string;
  /** The namespace of the Secret. */
  readonly namespace: string;
  /** One base64 key per line; without it the Secret is used. */
  readonly keys?: string | undefined;
}

/** Rejects with a KubeApiError, or a TypeError if the keys or the cluster's id are unusable. */
export async function loadSeal(source: SealSource, api: KubeApi, signal: AbortSignal): Promise<Seal> {
  const clusterId = await loadClusterId(api, signal);
  return sealOf(source, clusterId, source.keys ?? (await loadSecret(source.namespace, api, signal)));
}

/** The same, but creates nothing: undefined if no agent has created the Secret yet. */
export async function findSeal(
  source: SealSource,
  api: KubeApi,
  signal: AbortSignal,
): Promise<Seal | undefined> {
  const clusterId = await loadClusterId(api, signal);
  const keys = source.keys ?? (await readSecret(source.namespace, api, signal));
  return keys === undefined ? undefined : sealOf(source, clusterId, keys);
}

function sealOf({ region, namespace, keys }: SealSource, clusterId: string, text: string): Seal {
  const place = keys === undefined ? `Secret ${namespace}/${sealSecretName}` : "seal.keys";
  return new Seal({ clusterId, region, keys: parseSealKeys(text, place) });
}

async function loadClusterId(api: KubeApi, signal: AbortSignal): Promise<string> {
  const system = await api.get(namespaces, { name: clusterIdNamespace }, { detail: "metadata" }, signal);
  const clusterId = system?.metadata?.uid;
  if (clusterId === undefined) throw new TypeError(`the cluster has no namespace ${clusterIdNamespace}`);
  return clusterId;
}

function parseSealKeys(text: string, place: string): [SealKey, ...SealKey[]] {
  const keys = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line, index) => parseKey(line, `${place}: key ${index + 1}`));
  const [first, ...others] = keys;
  if (first === undefined) throw new TypeError(`${place} contains no key`);
  return [first, ...others];
}

function parseKey(line: string, place: string): SealKey {
  const bytes = Buffer.from(line, "base64");
  if (bytes.length !== sealKeyBytes)
    throw new TypeError(`${place} must be the base64 of ${sealKeyBytes} bytes`);
  return createSealKey(bytes);
}

async function loadSecret(namespace: string, api: KubeApi, signal: AbortSignal): Promise<string> {
  const found = await readSecret(namespace, api, signal);
  if (found !== undefined) return found;
  try {
    await createSecret(namespace, api, signal);
  } catch (error) {
    // Another krane was faster.
    if (!isConflict(error)) throw error;
  }
  return (await readSecret(namespace, api, signal)) ?? "";
}

async function readSecret(namespace: string, api: KubeApi, signal: AbortSignal): Promise<string | undefined> {
  const secret: Secret | undefined = await api.get(secrets, { namespace, name: sealSecretName }, {}, signal);
  return secret && Buffer.from(secret.data?.[keysEntry] ?? "", "base64").toString();
}

async function createSecret(namespace: string, api: KubeApi, signal: AbortSignal): Promise<void> {
  const metadata = { namespace, name: sealSecretName, labels: { ...ownLabels(components.seal) } };
  const keys = `${randomBytes(sealKeyBytes).toString("base64")}\n`;
  const secret: Secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata,
    type: "Opaque",
    data: { [keysEntry]: Buffer.from(keys).toString("base64") },
  };
  try {
    await api.create(secrets, secret, { fieldManager }, signal);
  } catch (error) {
    if (!(error instanceof KubeApiError) || !isNotFound(error)) throw error;
    await createNamespace(namespace, api, signal);
    await api.create(secrets, secret, { fieldManager }, signal);
  }
}

/** It is not an error if it exists. */
export async function createNamespace(name: string, api: KubeApi, signal: AbortSignal): Promise<void> {
  const namespace: Namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
  try {
    await api.create(namespaces, namespace, { fieldManager }, signal);
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
}
