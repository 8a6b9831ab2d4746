// The sample scenario of `krane dev`: three deployments in two environments of one workspace, the sentinel in
// front of one of them, and a policy that lets its traffic in. All of it carries a workspace id that exists nowhere
// else, by which a later `krane dev` recognizes what an earlier one left in a cluster.

import type { ApplyInit } from "../kinds/kinds.ts";
import { ciliumPolicyKind, policyApiVersion } from "../kinds/policy/policy-document.ts";
import { ciliumNamespaceLabel, labelKeys, sentinelNamespace } from "../model/labels.ts";
import type { Admin } from "../server/admin-service/admin-client.ts";
import { applyWanted } from "./wanted-objects.ts";

export const devRegion = "local.dev";
export const devNamespace = "krane-dev";
export const devWorkspaceId = "ws_krane_dev";
const devProjectId = "proj_krane_dev";

type DeploymentInit = ApplyInit<"deployment">;

export async function applySample(admin: Admin, cluster: "embedded" | "real"): Promise<void> {
  const region = { admin, name: devRegion };
  const owner = { workspaceId: devWorkspaceId, projectId: devProjectId };
  for (const id of new Set(sampleDeployments().map(({ environmentId = "" }) => environmentId)))
    await admin.applyEnvironment({ region: devRegion, id, ...owner });
  for (const deployment of sampleDeployments()) await applyWanted(region, "deployment", deployment);
  // On a real cluster a sentinel would need an image and databases that are not available.
  if (cluster === "embedded") await applyWanted(region, "sentinel", sampleSentinel());
  await applyWanted(region, "policy", samplePolicy(), policedDeployment);
}

// Real images, so that the same scenario runs on a real cluster; the embedded one pulls nothing. Each deployment
// has a different one, so that one can crash without the others.
export function sampleDeployments(): readonly DeploymentInit[] {
  return [
    sampleDeployment("web-1", "env_production", "docker.io/nginxinc/nginx-unprivileged:1.25", 2),
    sampleDeployment("api-1", "env_production", "docker.io/traefik/whoami:v1.10", 3),
    sampleDeployment("preview-1", "env_preview", "docker.io/nginxinc/nginx-unprivileged:1.26", 1),
  ];
}

function sampleDeployment(
  name: string,
  environmentId: string,
  image: string,
  replicas: number,
): DeploymentInit {
  return {
    k8sNamespace: devNamespace,
    k8sName: name,
    workspaceId: devWorkspaceId,
    projectId: devProjectId,
    environmentId,
    deploymentId: deploymentIdOf(name),
    image,
    replicas,
    cpuMillicores: 100n,
    memoryMib: 128n,
    port: 8080,
  };
}

export function sampleSentinel(): ApplyInit<"sentinel"> {
  return {
    k8sName: "gateway",
    workspaceId: devWorkspaceId,
    projectId: devProjectId,
    environmentId: "env_production",
    sentinelId: "se_gateway",
    image: "registry.example/sentinel:1",
    replicas: 1,
    cpuMillicores: 100n,
    memoryMib: 128n,
  };
}

/** The deployment that it lets traffic in to, and that it is deleted with. */
const policedDeployment = deploymentIdOf("web-1");

export function samplePolicy(): ApplyInit<"policy"> {
  const sentinels = {
    [ciliumNamespaceLabel]: sentinelNamespace,
    [labelKeys.workspaceId]: devWorkspaceId,
    [labelKeys.environmentId]: "env_production",
  };
  const document = {
    apiVersion: policyApiVersion,
    kind: ciliumPolicyKind,
    spec: {
      endpointSelector: { matchLabels: { [labelKeys.deploymentId]: policedDeployment } },
      ingress: [
        {
          fromEndpoints: [{ matchLabels: sentinels }],
          toPorts: [{ ports: [{ port: "8080", protocol: "TCP" }] }],
        },
      ],
    },
  };
  return {
    k8sNamespace: devNamespace,
    k8sName: "to-web-1",
    ciliumNetworkPolicyId: "net_web-1",
    policy: new TextEncoder().encode(JSON.stringify(document)),
  };
}

/** Every version of a workload is a separate deployment, with a different name and id. */
export function deploymentIdOf(name: string): string {
  return `d_${name}`;
}

/** `web-1` becomes `web-2`, or the next unused number: a name is never used twice. */
export function nextName(name: string, taken: ReadonlySet<string>): string {
  const base = name.replace(/-\d+$/, "");
  for (let number = Number(/-(\d+)$/.exec(name)?.[1] ?? 1) + 1; ; number++) {
    const next = `${base}-${number}`;
    if (!taken.has(next)) return next;
  }
}

/** Increments the last number of the tag. */
export function nextImage(text: string): string {
  const next = text.replace(
    /:(.*?)(\d+)$/,
    (_, before: string, last: string) => `:${before}${Number(last) + 1}`,
  );
  return next === text ? `${text}:2` : next;
}
