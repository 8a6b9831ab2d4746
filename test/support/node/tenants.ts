// Tenants' deployments on the real node: applied through the control plane, asked over HTTP from a pod.

import { appImage } from "./images.ts";
import type { InstalledKrane } from "./installed-krane.ts";

export interface Tenant {
  readonly id: string;
  readonly namespace: string;
  /** Fields of the Deployment document that differ from the defaults. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

const probeNamespace = "probe";

/** The documents of an environment and a deployment in it, both named after the tenant. */
export function documentsOf({ id, namespace, fields }: Tenant): string {
  const owner = { workspace: `ws_${id}`, project: `proj_${id}` };
  const environment = { apiVersion: "krane/v1", kind: "Environment", id: `env_${id}`, ...owner };
  const deployment = {
    apiVersion: "krane/v1",
    kind: "Deployment",
    id: `d_${id}`,
    name: id,
    namespace,
    ...owner,
    environment: `env_${id}`,
    image: appImage,
    cpu: "1",
    // A busy machine may take many seconds to start a program, and the same check also restarts it.
    healthcheck: { method: "GET", path: "/", intervalSeconds: 1, failureThreshold: 60 },
    ...fields,
  };
  return [environment, deployment].map((document) => JSON.stringify(document)).join("\n---\n");
}

/** Resolves when it is Ready, as the control plane sees it. */
export async function applyAndWait(krane: InstalledKrane, tenant: Tenant): Promise<void> {
  await krane.type(`krane apply --wait --timeout 60s -f - <<'END'\n${documentsOf(tenant)}\nEND`);
}

/** The addresses of the pods of a deployment, by pod. */
export async function podsOf(
  krane: InstalledKrane,
  { id, namespace }: Tenant,
): Promise<readonly TenantPod[]> {
  const selector = `unkey.com/deployment.id=d_${id}`;
  const listed = await krane.cluster.kubectl(["-n", namespace, "get", "pods", "-l", selector, "-o", "json"]);
  const { items } = JSON.parse(listed) as { readonly items: readonly ListedPod[] };
  return items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata, spec, status }) => ({
      name: metadata.name,
      address: status.podIP ?? "",
      runtimeClass: spec.runtimeClassName,
    }));
}

export interface TenantPod {
  readonly name: string;
  readonly address: string;
  readonly runtimeClass: string | undefined;
}

interface ListedPod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly runtimeClassName?: string };
  readonly status: { readonly podIP?: string };
}

/** Starts a pod that is no tenant's, outside gVisor, for `askFromPod`. */
export async function startProbe({ cluster, type }: InstalledKrane): Promise<void> {
  const pod = {
    apiVersion: "v1",
    kind: "List",
    items: [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: probeNamespace } },
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "probe", namespace: probeNamespace },
        spec: { containers: [{ name: "probe", image: appImage }], automountServiceAccountToken: false },
      },
    ],
  };
  await cluster.kubectl(["apply", "--server-side", "-f", "-"], { input: JSON.stringify(pod) });
  await type(`kubectl --namespace ${probeNamespace} wait --for=condition=Ready --timeout=60s pod/probe`);
}

/** The body that a URL answers to the probe pod. */
export async function askFromPod({ cluster }: InstalledKrane, url: string): Promise<string> {
  const code =
    "fetch(process.argv[1], { signal: AbortSignal.timeout(5_000) }).then((a) => a.text()).then(console.log)";
  const command = ["/nodejs/bin/node", "-e", code, url];
  return (await cluster.kubectl(["-n", probeNamespace, "exec", "probe", "--", ...command])).trimEnd();
}
