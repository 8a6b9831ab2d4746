// What people and tenants do in a world: they order, change and delete at the control plane, edit and delete objects in the
// cluster, ask for secrets, and lose nodes. Each action is drawn when it happens, from its own random choices.

import type { ApplyInit, KindName } from "../src/kinds/kinds.ts";
import { createSpec } from "../src/server/kind-messages.ts";
import { stopping } from "../src/server/row-rules.ts";
import type { Choices } from "./choices.ts";
import {
  copyByHand,
  createForeign,
  deleteByHand,
  deleteNamespace,
  editByHand,
  holdByHand,
} from "./people.ts";
import { anyPlace, namespaces, type Place } from "./places.ts";
import { askForSecrets } from "./pod-secrets.ts";
import { canary } from "./sim-vault.ts";
import { region, type World } from "./world.ts";

export type Action = (world: World, choices: Choices) => Promise<void>;

const author = (world: World) => ({ by: "sim", atMs: world.clock.wallMs() });

/** Without those of apps. */
async function rowsOf<K extends KindName>(world: World, kind: K) {
  return (await world.plane.store.rows(region, kind)).filter(({ appId }) => appId === undefined);
}

async function put<K extends KindName>(world: World, kind: K, id: string, init: ApplyInit<K>): Promise<void> {
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

export function orderDeployment(world: World, place: Place, id: string, wish: DeploymentWish): Promise<void> {
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

async function orderAnyDeployment(world: World, choices: Choices): Promise<void> {
  const place = anyPlace(choices);
  const { namespace, name } = place;
  const rows = (await rowsOf(world, "deployment")).filter(
    ({ spec }) => spec.k8sNamespace === namespace && spec.k8sName === name,
  );
  const running = rows.find(({ desired }) => desired === "running");
  const id =
    running?.id ??
    `d_${namespace}${name.at(-1)}-${rows.length === 0 || choices.chance(0.5) ? 0 : rows.length}`;
  const hasSecrets = choices.chance(0.4);
  const replicas = choices.index(4);
  await orderDeployment(world, place, id, { replicas, port: 8080 + choices.index(3), hasSecrets });
}

export function orderSentinel(world: World, place: Place, replicas: number): Promise<void> {
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

export function orderPolicy(world: World, { namespace, name, environment }: Place): Promise<void> {
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

export async function orderDeletion(world: World, kind: KindName, id: string): Promise<void> {
  await world.plane.store.change(region, kind, id, stopping(kind), author(world));
  world.trace.add("people", `order ${world.ledger.next}: delete ${kind} ${id}`);
  world.ledger.add(kind, id, "stopped");
}

/** Orders the deletion of something that is wanted. */
async function stopOne(world: World, choices: Choices, kind: KindName): Promise<void> {
  const running = (await rowsOf(world, kind)).filter(({ desired }) => desired === "running");
  if (running.length === 0) return;
  await orderDeletion(world, kind, choices.one(running).id);
}

/** A row vanishes without an order, as by a mistake in the database. */
export async function loseRow(world: World, choices: Choices): Promise<void> {
  const kind = choices.one(["deployment", "sentinel", "policy"] as const);
  const rows = await rowsOf(world, kind);
  if (rows.length === 0) return;
  const { id } = choices.one(rows);
  await world.plane.store.remove(region, kind, id, author(world));
  world.trace.add("people", `the row of ${kind} ${id} vanishes`);
  world.ledger.vanished(kind, id, world.clock.nowMs());
}

async function loseNode(world: World, choices: Choices): Promise<void> {
  const name = String(choices.one(world.cluster.list("nodes")).metadata.name);
  world.trace.add("cluster", `node ${name} is lost`);
  world.cluster.running.nodes.lose(name);
  world.clock.setTimer(choices.between(20_000, 400_000), () => world.cluster.running.nodes.restore(name));
}

async function breakImages(world: World, choices: Choices): Promise<void> {
  const { behaviours } = world.cluster.running;
  const name = `broken ${world.clock.nowMs()}`;
  const behaviour = choices.one([
    { image: "missing" },
    { crashAfterMs: 5_000 },
    { readyMs: "never" },
  ] as const);
  behaviours.set(name, { image: `registry.example/${choices.one(namespaces)}/*`, behaviour });
  world.clock.setTimer(choices.between(30_000, 300_000), () => behaviours.remove(name));
}

/** With their weights, in seeds that have apps. */
export const appLife: readonly (readonly [weight: number, name: string, action: Action])[] = [
  [10, "release an image", ({ apps }, choices) => apps.release(choices)],
  [3, "scale an app", ({ apps }, choices) => apps.scale(choices)],
  [1, "delete an app", ({ apps }, choices) => apps.remove(choices)],
];

/** With their weights, in seeds in which a program gives orders by SchedulerService. */
export const callerLife: readonly (readonly [weight: number, name: string, action: Action])[] = [
  [10, "order by a call", ({ caller }, choices) => caller.apply(choices)],
  [4, "delete by a call", ({ caller }, choices) => caller.remove(choices)],
  [1, "hand over to the control plane", ({ caller }, choices) => caller.handOver(choices)],
];

/** With their weights. */
export const life: readonly (readonly [weight: number, name: string, action: Action])[] = [
  [30, "order a deployment", orderAnyDeployment],
  [8, "delete a deployment", (world, choices) => stopOne(world, choices, "deployment")],
  [6, "order a sentinel", (world, choices) => orderSentinel(world, anyPlace(choices), 1 + choices.index(2))],
  [2, "delete a sentinel", (world, choices) => stopOne(world, choices, "sentinel")],
  [4, "order a policy", (world, choices) => orderPolicy(world, anyPlace(choices))],
  [2, "delete a policy", (world, choices) => stopOne(world, choices, "policy")],
  [6, "delete by hand", deleteByHand],
  [8, "edit by hand", editByHand],
  [2, "create a foreign object", createForeign],
  [2, "copy an object by hand", copyByHand],
  [2, "hold an object with a finalizer", holdByHand],
  [1, "delete a namespace", deleteNamespace],
  [2, "lose a node", loseNode],
  [3, "break images", breakImages],
  [12, "ask for secrets", askForSecrets],
];
