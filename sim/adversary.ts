// The faults that a world can have, by the ids of docs/faults.md. Each begins at a time that the plan says, and ends by
// itself; `healAll` ends them all.
import type { Choices } from "./choices.ts";
import {
  annotatingWebhook,
  denyingWebhook,
  failingWebhook,
  type Rule,
  rejectedToken,
  revokedRight,
} from "./cluster-rules.ts";
import { loseRow } from "./life.ts";
import { calm } from "./link.ts";
import { namespaces } from "./places.ts";
import type { SimAgent } from "./sim-agent.ts";
import { region } from "./sim-region.ts";
import type { World } from "./world.ts";

export interface Fault {
  /** The rows of docs/faults.md that it covers. */
  readonly ids: readonly string[];
  readonly name: string;
  begin(world: World, choices: Choices): Promise<void> | void;
}

const agentOf = (world: World, choices: Choices): SimAgent => choices.one(world.agents);

/** Changes something now, and back after a while. */
function forAWhile(world: World, ms: number, begin: () => void, end: () => void): void {
  begin();
  world.clock.setTimer(ms, end);
}

function killAgent(world: World, choices: Choices): void {
  const targets = choices.chance(0.2) ? world.agents : [agentOf(world, choices)];
  for (const agent of targets) {
    agent.kill();
    world.startLater(agent, choices.between(500, 40_000));
  }
}

function stopAgent(world: World, choices: Choices): void {
  const agent = agentOf(world, choices);
  agent.stop();
  // After its grace period.
  world.startLater(agent, choices.between(46_000, 70_000));
}

function partition(peer: "kube" | "plane") {
  return (world: World, choices: Choices) => {
    const link = agentOf(world, choices).linkTo(peer);
    if (link === undefined) return;
    forAWhile(
      world,
      choices.between(2_000, 150_000),
      () => link.setDown(true),
      () => link.setDown(false),
    );
  };
}

function badWeather(peer: "kube" | "plane") {
  return (world: World, choices: Choices) => {
    const link = agentOf(world, choices).linkTo(peer);
    if (link === undefined) return;
    const weather = {
      latencyMaxMs: choices.between(20, 2_500),
      requestLoss: choices.next() * 0.2,
      responseLoss: choices.next() * 0.3,
      cutRate: choices.next() * 0.1,
    };
    // Not the weather from before: that may be another fault's, which would outlast it then.
    const { latencyMaxMs, requestLoss, responseLoss, cutRate } = calm;
    forAWhile(
      world,
      choices.between(5_000, 120_000),
      () => Object.assign(link.weather, weather),
      () => Object.assign(link.weather, { latencyMaxMs, requestLoss, responseLoss, cutRate }),
    );
  };
}

function cutWatches(world: World, choices: Choices): void {
  const how = choices.one(["reset", "end"] as const);
  agentOf(world, choices).linkTo("kube")?.cutAll(how);
}

/** Watches and lists from before get a 410. */
function compact(world: World): void {
  world.cluster.server.faults.compact();
  world.cluster.server.faults.closeWatches();
}

function apiErrors(world: World, choices: Choices): void {
  const { weather } = world.cluster;
  const rates = { refusals: choices.next() * 0.4, lateFailures: choices.next() * 0.4 };
  const calm = { refusals: 0, lateFailures: 0 };
  forAWhile(
    world,
    choices.between(5_000, 120_000),
    () => Object.assign(weather, rates),
    () => Object.assign(weather, calm),
  );
}

function apiServerDown(world: World, choices: Choices): void {
  const { weather } = world.cluster;
  world.cluster.server.faults.closeWatches();
  forAWhile(
    world,
    choices.between(5_000, 180_000),
    () => Object.assign(weather, { isDown: true }),
    () => Object.assign(weather, { isDown: false }),
  );
}

async function restoreBackup(world: World, choices: Choices): Promise<void> {
  const backup = world.backups.length === 0 ? undefined : choices.one(world.backups);
  if (backup === undefined) return;
  world.plane.goDown(choices.between(1_000, 20_000));
  await world.plane.restore(backup);
  await world.notePlaneRows();
}

async function takeBackup(world: World): Promise<void> {
  world.backups.push(await world.plane.backup());
}

async function emptyPlane(world: World): Promise<void> {
  await world.plane.empty();
  await world.notePlaneRows();
}

/** For a while agents reach a server that does not have some of the rows, as one for another region. */
async function loseRowsForAWhile(world: World, choices: Choices): Promise<void> {
  const backup = await world.plane.backup();
  const share = choices.one([0.3, 0.7, 1]);
  const rows = backup.rows.filter(() => !choices.chance(share));
  world.trace.add("control plane", `answers with ${rows.length} of ${backup.rows.length} rows`);
  await world.plane.pretend({ ...backup, rows });
  const ms = choices.between(10_000, 90_000);
  world.clock.setTimer(ms, () => world.plane.endLag());
}

/** Of a control plane that names no incarnation, an agent believes an older state after three passes of the resync. */
function lagMaxMs({ plane }: World): number {
  return plane.namesIncarnation ? 200_000 : 90_000;
}

/** Agents reach a replica that stays as it is now, while the primary goes on. */
async function lag(world: World, choices: Choices): Promise<void> {
  await world.plane.lag(await world.plane.backup());
  world.clock.setTimer(choices.between(10_000, lagMaxMs(world)), () => world.plane.endLag());
}

/** Longer than the silence after which an agent opens a watch again. */
const watchLagMaxMs = 100_000;

function watchesLag(world: World, choices: Choices): void {
  const link = agentOf(world, choices).linkTo("kube");
  if (link === undefined) return;
  const { weather } = link;
  const eventDelayMs = choices.between(1_000, watchLagMaxMs);
  forAWhile(
    world,
    choices.between(20_000, 200_000),
    () => Object.assign(weather, { eventDelayMs }),
    () => Object.assign(weather, { eventDelayMs: 0 }),
  );
}

/** Streams send what they have sent before once more, from their beginning. */
function replayStreams(world: World, choices: Choices): void {
  const link = agentOf(world, choices).linkTo("plane");
  if (link === undefined) return;
  const { weather } = link;
  const replayRate = choices.between(0.02, 0.5);
  forAWhile(
    world,
    choices.between(10_000, 150_000),
    () => Object.assign(weather, { replayRate }),
    () => Object.assign(weather, { replayRate: 0 }),
  );
}

function rule(create: (choices: Choices) => Rule) {
  return (world: World, choices: Choices) => {
    const { rules } = world.cluster;
    const added = create(choices);
    forAWhile(
      world,
      choices.between(10_000, 240_000),
      () => rules.add(added),
      () => rules.delete(added),
    );
  };
}

const rights = [
  "replicasets",
  "deployments",
  "pods",
  "ciliumnetworkpolicies",
  "namespaces",
  "leases",
] as const;

function anyRevokedRight(choices: Choices): Rule {
  return revokedRight(choices.one(rights), choices.one(["read", "write"] as const));
}

const webhooks = [
  denyingWebhook,
  annotatingWebhook,
  (namespace: string) => failingWebhook(namespace, 10_000),
];

function vaultDown(world: World, choices: Choices): void {
  forAWhile(
    world,
    choices.between(5_000, 120_000),
    () => Object.assign(world.vault, { isDown: true }),
    () => Object.assign(world.vault, { isDown: false }),
  );
}

/** How often a fault is drawn, among those that a seed switches on. */
export const faults: readonly (Fault & { readonly weight: number })[] = [
  { ids: ["E01", "B01", "D20"], name: "kill an agent", weight: 8, begin: killAgent },
  { ids: ["E02"], name: "stop an agent", weight: 3, begin: stopAgent },
  {
    ids: ["E04"],
    name: "stall an agent",
    weight: 6,
    begin: (world, choices) => agentOf(world, choices).process?.stall(choices.between(500, 70_000)),
  },
  {
    ids: ["E15"],
    name: "set the wall clock of an agent",
    weight: 2,
    begin: (world, choices) =>
      agentOf(world, choices).process?.stepWallClock(choices.between(-3_600_000, 3_600_000)),
  },
  { ids: ["A01"], name: "partition an agent from the control plane", weight: 4, begin: partition("plane") },
  {
    ids: ["A06"],
    name: "cut the control plane's streams",
    weight: 5,
    begin: (world) => world.plane.cutStreams(),
  },
  {
    ids: ["A18", "B06", "G01", "G09"],
    name: "bad network to the control plane",
    weight: 5,
    begin: badWeather("plane"),
  },
  { ids: ["C17"], name: "partition an agent from Kubernetes", weight: 4, begin: partition("kube") },
  { ids: ["C01", "C12"], name: "cut an agent's watches", weight: 5, begin: cutWatches },
  { ids: ["C11", "D13"], name: "bad network to Kubernetes", weight: 5, begin: badWeather("kube") },
  { ids: ["C03"], name: "compact the history of Kubernetes", weight: 3, begin: compact },
  {
    ids: ["C02", "C12", "D13", "D14", "F04"],
    name: "errors of the API server",
    weight: 6,
    begin: apiErrors,
  },
  { ids: ["B15", "C02", "C17", "T16"], name: "API server down", weight: 2, begin: apiServerDown },
  {
    ids: ["A06", "G08"],
    name: "control plane down",
    weight: 3,
    begin: (world, choices) => world.plane.goDown(choices.between(2_000, 300_000)),
  },
  { ids: ["B16"], name: "restore the control plane from a backup", weight: 2, begin: restoreBackup },
  { ids: ["B16"], name: "back the control plane up", weight: 4, begin: takeBackup },
  { ids: ["B12"], name: "empty the control plane", weight: 1, begin: emptyPlane },
  { ids: ["B12"], name: "lose a row of the control plane", weight: 2, begin: loseRow },
  { ids: ["B17"], name: "a lagging replica answers", weight: 3, begin: lag },
  { ids: ["B12"], name: "a server for another region answers", weight: 3, begin: loseRowsForAWhile },
  { ids: ["B06"], name: "replay the control plane's streams", weight: 3, begin: replayStreams },
  { ids: ["C06"], name: "an agent's watches lag", weight: 4, begin: watchesLag },
  {
    ids: ["D11"],
    name: "an admission webhook interferes",
    weight: 4,
    begin: rule((choices) => choices.one(webhooks)(choices.one([...namespaces, "sentinel"]))),
  },
  { ids: ["D21"], name: "revoke a right of the agents", weight: 3, begin: rule(anyRevokedRight) },
  {
    ids: ["D23"],
    name: "reject the token of an agent",
    weight: 2,
    begin: rule((choices) => rejectedToken(choices.one(["a", "b"]))),
  },
  { ids: ["F01"], name: "vault down", weight: 2, begin: vaultDown },
];

/** Everything works from now on. */
export function healAll(world: World): void {
  world.trace.add("adversary", `stops, in ${region}`);
  Object.assign(world.cluster.weather, { refusals: 0, lateFailures: 0, isDown: false });
  world.cluster.rules.clear();
  world.plane.heal();
  world.vault.isDown = false;
  for (const { metadata } of world.cluster.list("nodes"))
    world.cluster.running.nodes.restore(metadata.name ?? "");
  for (const agent of world.agents) {
    for (const link of agent.links) link.calmDown();
    agent.process?.resume();
    world.startLater(agent, 1_000);
  }
}
