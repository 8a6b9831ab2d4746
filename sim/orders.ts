// Orders at the control plane of a world. Each goes into the ledger with its number, which its objects carry in their
// image or port.
import type { ApplyInit, KindName } from "../src/kinds/kinds.ts";
import { createSpec } from "../src/server/kind-messages.ts";
import { stopping } from "../src/server/row-rules.ts";
import type { Place } from "./places.ts";
import { region, type SimRegion } from "./sim-region.ts";
import { canary } from "./sim-vault.ts";

export const author = (world: SimRegion) => ({ by: "sim", atMs: world.clock.wallMs() });

async function put<K extends KindName>(
  world: SimRegion,
  kind: K,
  id: string,
  init: ApplyInit<K>,
): Promise<void> {
  try {
    await world.plane.store.put(region, kind, createSpec(kind, init), author(world));
  } catch (error) {
    // For example a name that another id still has.
    world.trace.add("people", `cannot order ${kind} ${id}: ${error instanceof Error ? error.message : ""}`);
    return;
  }
  world.trace.add("people", `order ${world.ledger.next}: ${kind} ${id}`);
  world.ledger.add(kind, id, "running");
}

export interface DeploymentWish {
  readonly replicas: number;
  readonly port: number;
  readonly hasSecrets: boolean;
}

export function orderDeployment(
  world: SimRegion,
  place: Place,
  id: string,
  wish: DeploymentWish,
): Promise<void> {
  const { namespace, name, environment, workspaceId, projectId } = place;
  return put(world, "deployment", id, {
    k8sNamespace: namespace,
    k8sName: name,
    workspaceId,
    projectId,
    environmentId: environment,
    deploymentId: id,
    image: `registry.example/${namespace}/web:${world.ledger.next}`,
    replicas: wish.replicas,
    cpuMillicores: 250n,
    memoryMib: 256n,
    port: wish.port,
    ...(wish.hasSecrets && {
      encryptedEnvironmentVariables: world.vault.blobOf(environment, `${canary}${environment}`),
    }),
  });
}

export function orderSentinel(world: SimRegion, place: Place, replicas: number): Promise<void> {
  const { namespace, environment, workspaceId, projectId } = place;
  const id = `se_${environment}`;
  return put(world, "sentinel", id, {
    k8sName: `gate-${environment.replace("_", "-")}`,
    workspaceId,
    projectId,
    environmentId: environment,
    sentinelId: id,
    image: `registry.example/${namespace}/sentinel:${world.ledger.next}`,
    replicas,
    cpuMillicores: 250n,
    memoryMib: 256n,
  });
}

export function orderPolicy(world: SimRegion, { namespace, name, environment }: Place): Promise<void> {
  const id = `net_${namespace}${name.at(-1)}`;
  const port = String(world.ledger.portOf(world.ledger.next));
  const spec = {
    endpointSelector: { matchLabels: { "unkey.com/environment.id": environment } },
    ingress: [
      {
        fromEndpoints: [{ matchLabels: { "unkey.com/environment.id": environment } }],
        toPorts: [{ ports: [{ port, protocol: "TCP" }] }],
      },
    ],
  };
  const document = { apiVersion: "cilium.io/v2", kind: "CiliumNetworkPolicy", metadata: { name: "x" }, spec };
  return put(world, "policy", id, {
    k8sNamespace: namespace,
    k8sName: `extra-${name}`,
    ciliumNetworkPolicyId: id,
    policy: new TextEncoder().encode(JSON.stringify(document)),
  });
}

export async function orderDeletion(world: SimRegion, kind: KindName, id: string): Promise<void> {
  await world.plane.store.change(region, kind, id, stopping(kind), author(world));
  world.trace.add("people", `order ${world.ledger.next}: delete ${kind} ${id}`);
  world.ledger.add(kind, id, "stopped");
}
