// Short stories without chance, for plans that disturb each of their messages once. Together they create, change, delete
// and create again every kind, while people edit and the leader changes.
import { labelKeys } from "../src/model/labels.ts";
import { type DeploymentWish, orderDeletion, orderDeployment, orderPolicy, orderSentinel } from "./orders.ts";
import { pathOf } from "./people.ts";
import { placeOf } from "./places.ts";
import { ownNamespace } from "./sim-agent.ts";
import { leaseName } from "./sim-region.ts";
import type { World } from "./world.ts";

/** What happens at which second of the story. */
type Story = readonly (readonly [atSeconds: number, act: (world: World) => Promise<void> | void])[];

const acme = placeOf("acme", 0);
const bolt = placeOf("bolt", 1);
const wish: DeploymentWish = { replicas: 2, port: 8080, hasSecrets: false };

function deploy(id: string, changes: Partial<DeploymentWish> = {}, place = acme) {
  return (world: World) => orderDeployment(world, place, id, { ...wish, ...changes });
}

function patch(plural: "replicasets" | "deployments" | "ciliumnetworkpolicies", body: unknown) {
  return async (world: World) => {
    const group = plural === "ciliumnetworkpolicies" ? "cilium.io" : "apps";
    for (const object of world.cluster.list(plural, group))
      await world.cluster.kubectl({
        method: "PATCH",
        path: pathOf(plural, object),
        contentType: "application/merge-patch+json",
        body,
      });
  };
}

async function deleteWorkloads(world: World): Promise<void> {
  for (const object of world.cluster.list("replicasets", "apps"))
    await world.cluster.kubectl({ method: "DELETE", path: pathOf("replicasets", object) });
}

/** Stops the agent that holds the lease; another process starts in its place later. */
function stopLeader(world: World): void {
  const lease = world.cluster.get("leases", "coordination.k8s.io", ownNamespace, leaseName);
  const holder = (lease?.["spec"] as { holderIdentity?: string } | undefined)?.holderIdentity ?? "";
  const leader = world.agents.find(({ name }) => holder.startsWith(`krane-${name}`));
  if (leader === undefined) return;
  leader.stop();
  world.startLater(leader, 40_000);
}

async function restoreFirstBackup(world: World): Promise<void> {
  const [backup] = world.backups;
  if (backup === undefined) return;
  await world.plane.restore(backup);
  await world.notePlaneRows();
}

export const stories: Readonly<Record<string, Story>> = {
  deployment: [
    [5, deploy("d_acme0-0", { hasSecrets: true })],
    [15, deploy("d_acme0-0", { replicas: 3 })],
    [25, deploy("d_acme0-0", { port: 8081 })],
    [30, deploy("d_bolt1-0", { replicas: 1 }, bolt)],
    [40, (world) => orderDeletion(world, "deployment", "d_acme0-0")],
  ],
  namesake: [
    [5, deploy("d_acme0-0")],
    [20, (world) => orderDeletion(world, "deployment", "d_acme0-0")],
    [21, deploy("d_acme0-1")],
    [35, (world) => orderDeletion(world, "deployment", "d_acme0-1")],
    [45, deploy("d_acme0-0", { replicas: 1 })],
  ],
  sentinel: [
    [5, (world) => orderSentinel(world, acme, 1)],
    [15, (world) => orderSentinel(world, acme, 2)],
    [30, (world) => orderDeletion(world, "sentinel", `se_${acme.environment}`)],
    [40, (world) => orderSentinel(world, acme, 1)],
  ],
  policy: [
    [5, (world) => orderPolicy(world, acme)],
    [10, deploy("d_acme0-0", { replicas: 1 })],
    [15, (world) => orderPolicy(world, acme)],
    [25, (world) => orderDeletion(world, "policy", "net_acme0")],
    [30, (world) => orderDeletion(world, "deployment", "d_acme0-0")],
    [35, (world) => orderPolicy(world, bolt)],
  ],
  people: [
    [5, deploy("d_acme0-0")],
    [6, (world) => orderSentinel(world, bolt, 1)],
    [15, patch("replicasets", { spec: { replicas: 5, template: { spec: { hostNetwork: true } } } })],
    [20, patch("replicasets", { metadata: { labels: { [labelKeys.managedBy]: null } } })],
    [25, patch("deployments", { metadata: { annotations: { "krane.unkey.com/seal": "forged" } } })],
    [30, deleteWorkloads],
    [35, patch("ciliumnetworkpolicies", { spec: { enableDefaultDeny: { ingress: false } } })],
    [40, (world) => orderDeletion(world, "deployment", "d_acme0-0")],
  ],
  "change of leader and history": [
    [5, deploy("d_acme0-0")],
    [10, async (world) => void world.backups.push(await world.plane.backup())],
    [15, deploy("d_acme0-0", { replicas: 1, port: 8082 })],
    [16, deploy("d_bolt1-0", { replicas: 1 }, bolt)],
    [20, stopLeader],
    [22, (world) => orderDeletion(world, "deployment", "d_bolt1-0")],
    [30, restoreFirstBackup],
    [45, deploy("d_bolt1-0", { replicas: 2 }, bolt)],
  ],
};
