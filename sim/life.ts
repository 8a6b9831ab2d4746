// What people and tenants do in a world: they order, change and delete at the control plane, edit and delete objects in the
// cluster, ask for secrets, and lose nodes. Each action is drawn when it happens, from its own random choices.

import type { KindName } from "../src/kinds/kinds.ts";
import type { Choices } from "./choices.ts";
import { author, orderDeletion, orderDeployment, orderPolicy, orderSentinel } from "./orders.ts";
import {
  copyByHand,
  createForeign,
  deleteByHand,
  deleteNamespace,
  editByHand,
  holdByHand,
} from "./people.ts";
import { anyPlace, namespaces } from "./places.ts";
import { askForSecrets } from "./pod-secrets.ts";
import { region } from "./sim-region.ts";
import type { World } from "./world.ts";

export type Action = (world: World, choices: Choices) => Promise<void>;

/** Without those of apps. */
async function rowsOf<K extends KindName>(world: World, kind: K) {
  return (await world.plane.store.rows(region, kind)).filter(({ appId }) => appId === undefined);
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
