// Tenants' deployments on the real node: applied through the control plane, asked over HTTP from a pod.

import assert from "node:assert/strict";
import type { Pod } from "kubernetes-types/core/v1.js";
import { eventually } from "../eventually.ts";
import { appImage } from "./images.ts";
import type { InstalledKrane } from "./installed-krane.ts";

export interface Tenant {
  readonly id: string;
  readonly namespace: string;
  /** Fields of the Deployment document that differ from the defaults. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

const probeNamespace = "probe";

/** For what takes seconds on a machine that does nothing else. Only a test that fails waits so long. */
export const patience = { deadlineMs: 180_000 };

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
  await krane.type(`krane apply --wait --timeout 180s -f - <<'END'\n${documentsOf(tenant)}\nEND`);
}

/** Resolves when none of its pods is left, so that the next test has the room. It need not be there. */
export async function removeTenant(krane: InstalledKrane, tenant: Tenant): Promise<void> {
  const id = `d_${tenant.id}`;
  await krane.type(
    `if krane get deployment ${id} > /dev/null 2>&1; then krane delete deployment ${id} --yes --wait --timeout 180s; fi`,
  );
  await eventually(
    `no pod of ${id} is left`,
    async () => assert.deepEqual(await listPods(krane, tenant), []),
    patience,
  );
}

/** The addresses of the pods of a deployment, by pod. */
export async function podsOf(krane: InstalledKrane, tenant: Tenant): Promise<readonly TenantPod[]> {
  return (await listPods(krane, tenant))
    .filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
    .map(({ metadata, spec, status }) => ({
      name: metadata?.name ?? "",
      address: status?.podIP ?? "",
      runtimeClass: spec?.runtimeClassName,
    }));
}

/** Those that are being deleted included. */
export async function listPods(krane: InstalledKrane, { id, namespace }: Tenant): Promise<readonly Pod[]> {
  const selector = `unkey.com/deployment.id=d_${id}`;
  const listed = await krane.cluster.kubectl(["-n", namespace, "get", "pods", "-l", selector, "-o", "json"]);
  return (JSON.parse(listed) as { readonly items: readonly Pod[] }).items;
}

export interface TenantPod {
  readonly name: string;
  readonly address: string;
  readonly runtimeClass: string | undefined;
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
  await type(`kubectl --namespace ${probeNamespace} wait --for=condition=Ready --timeout=180s pod/probe`);
}

/** The body that a URL answers to the probe pod. */
export async function askFromPod({ cluster }: InstalledKrane, url: string): Promise<string> {
  const code =
    "fetch(process.argv[1], { signal: AbortSignal.timeout(30_000) }).then((a) => a.text()).then(console.log)";
  const command = ["/nodejs/bin/node", "-e", code, url];
  return (await cluster.kubectl(["-n", probeNamespace, "exec", "probe", "--", ...command])).trimEnd();
}
