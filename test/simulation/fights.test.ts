// Another program that undoes what krane does is not answered every time, and it is named: who, what and since when.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { events, replicaSets } from "../../src/kube/resources.ts";
import type { SimulatedAgent } from "./simulated-region.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web-1" };
const minuteMs = 60_000;

async function liveSet(world: SimulatedRegion): Promise<ReplicaSet | undefined> {
  return world.api.get(replicaSets, ref, {}, never);
}

async function settledWorld() {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  const agent = await world.startAgent();
  await world.until("it is settled", () => agent.controller.status().stream?.cursor === 1n);
  await world.clock.advance(2_000);
  return { world, agent };
}

/** What krane wrote about the ReplicaSet since the last call. */
function writesOf(agent: SimulatedAgent) {
  let seen = agent.writes.length;
  return (verb: "apply" | "delete") => {
    const found = agent.writes
      .slice(seen)
      .filter((write) => write.kind === "ReplicaSet" && write.verb === verb);
    seen = agent.writes.length;
    return found.length;
  };
}

/** Does something ten times a second. */
async function every100ms(world: SimulatedRegion, forMs: number, act: () => Promise<unknown>): Promise<void> {
  for (let passedMs = 0; passedMs < forMs; passedMs += 100) {
    await act();
    await world.clock.advance(100);
  }
}

const reasonOf = (agent: SimulatedAgent) =>
  agent.controller.objects({ onlyTroubled: true }).find(({ key }) => key === "acme/web-1")?.reason ?? "";

test("a program that deletes whatever krane creates gets a few answers, then one a minute, and is named", async () => {
  const { world, agent } = await settledWorld();
  const begunMs = world.clock.wallMs();
  const writes = writesOf(agent);
  const drop = () => world.api.delete(replicaSets, ref, {}, never).catch(() => undefined);
  await every100ms(world, minuteMs, drop);
  const first = writes("apply");
  assert.ok(first >= 4 && first <= 7, `${first} creations in the first minute`);
  const reason = reasonOf(agent);
  assert.match(reason, /^an unknown client keeps deleting ReplicaSet acme\/web-1 since /);
  const sinceMs = Date.parse(reason.split(" since ")[1] ?? "");
  assert.ok(sinceMs >= begunMs - 1_000 && sinceMs <= begunMs + 2_000, reason);

  await every100ms(world, 5 * minuteMs, drop);
  const later = writes("apply");
  assert.ok(later >= 4 && later <= 6, `${later} creations in the next five minutes`);
  assert.equal(reasonOf(agent), reason, "it is the same fight");
  const told = (await world.list(events)).filter((event) => Reflect.get(event, "reason") === "Contested");
  assert.ok(told.length > 0 && told.length <= 10, `${told.length} events`);
  for (const event of told) assert.ok(String(Reflect.get(event, "message")).includes(reason), reason);

  await world.until(
    "it is back when the other stops",
    async () => (await liveSet(world)) !== undefined,
    61_000,
  );
  await world.clock.advance(1_000);
  assert.equal(reasonOf(agent), "");
  await world.stop();
});

test("a new version is applied at once in the middle of a fight", async () => {
  const { world, agent } = await settledWorld();
  const drop = () => world.api.delete(replicaSets, ref, {}, never).catch(() => undefined);
  await every100ms(world, 3 * minuteMs, drop);
  assert.match(reasonOf(agent), /keeps deleting/);
  await world.setDeployment(1, { replicas: 5 });
  await world.until("it is applied", async () => (await liveSet(world))?.spec?.replicas === 5, 2_000);
  await world.stop();
});

test("a program that creates again whatever krane deletes gets a few answers, then one a minute", async () => {
  const { world, agent } = await settledWorld();
  const manifest = agent.writes.find(({ kind }) => kind === "ReplicaSet")?.manifest;
  assert.ok(manifest);
  const writes = writesOf(agent);
  await world.plane.admin.deleteDeployment(region, "d_1");
  await every100ms(world, 5 * minuteMs, () =>
    world.api.apply(replicaSets, manifest, { fieldManager: "krane", force: true }, never),
  );
  const deletions = writes("delete");
  assert.ok(deletions >= 5 && deletions <= 12, `${deletions} deletions in five minutes`);
  assert.match(
    reasonOf(agent),
    /^an unknown client keeps creating ReplicaSet acme\/web-1 again since .*, although it is to be deleted$/,
  );
  await world.until(
    "it is gone when the other stops",
    async () => (await liveSet(world)) === undefined,
    61_000,
  );
  await world.stop();
});

test("deletions and new orders through the control plane never wait, however often they alternate", async () => {
  const { world, agent } = await settledWorld();
  for (let round = 0; round < 12; round++) {
    await world.plane.admin.deleteDeployment(region, "d_1");
    await world.until("it is gone", async () => (await liveSet(world)) === undefined, 2_500);
    await world.setDeployment(1);
    await world.until("it is back", async () => (await liveSet(world)) !== undefined, 2_500);
    await world.clock.advance(3_000);
    assert.equal(reasonOf(agent), "");
  }
  await world.stop();
});

test("an object that is deleted by hand from time to time comes back at once every time", async () => {
  const { world } = await settledWorld();
  for (let round = 0; round < 8; round++) {
    await world.api.delete(replicaSets, ref, {}, never);
    await world.until("it is back", async () => (await liveSet(world)) !== undefined, 1_000);
    await world.clock.advance(45_000);
  }
  await world.stop();
});

test("a field that is changed now and then is named too, although every repair is immediate", async () => {
  const { world, agent } = await settledWorld();
  const edit = [{ op: "replace" as const, path: "/spec/replicas", value: 9 }];
  for (let round = 0; round < 6; round++) {
    const live = await liveSet(world);
    assert.ok(live);
    await world.api.patch(replicaSets, live, edit, { fieldManager: "autoscaler" }, never);
    await world.until("it is repaired", async () => (await liveSet(world))?.spec?.replicas === 1, 1_000);
    await world.clock.advance(30_000);
  }
  assert.equal(reasonOf(agent), "");
  const told = (await world.list(events)).filter((event) => Reflect.get(event, "reason") === "Contested");
  assert.equal(told.length, 1);
  assert.match(
    String(Reflect.get(told[0] ?? {}, "message")),
    /field manager "autoscaler" keeps changing spec\.replicas of ReplicaSet acme\/web-1 since /,
  );
  await world.stop();
});

const policyWrites = (agent: SimulatedAgent) =>
  agent.writes.filter(({ kind }) => kind === "CiliumNetworkPolicy").length;

test("a port that changes all the time rewrites the policy of its environment every two seconds at most", async () => {
  const { world, agent } = await settledWorld();
  const before = policyWrites(agent);
  let port = 9_000;
  await every100ms(world, minuteMs, async () => {
    port += 1;
    const path = "/spec/template/spec/containers/0/ports/0/containerPort";
    const live = await liveSet(world);
    if (live === undefined) return;
    const edit = [{ op: "replace" as const, path, value: port }];
    await world.api.patch(replicaSets, live, edit, { fieldManager: "krane" }, never);
  });
  const policies = policyWrites(agent) - before;
  assert.ok(policies > 0 && policies <= 40, `${policies} writes in a minute`);
  await world.stop();
});

test("a ReplicaSet of somebody else does not rewrite the policy of the environment that it names", async () => {
  const { world, agent } = await settledWorld();
  const before = policyWrites(agent);
  let port = 9_000;
  await every100ms(world, minuteMs, async () => {
    port += 1;
    // As anybody in the namespace can: an object that looks like krane's, of the same environment.
    const live = await liveSet(world);
    const copy = live && strangerWith(live, port);
    if (copy) await world.api.apply(replicaSets, copy, { fieldManager: "krane", force: true }, never);
  });
  assert.equal(policyWrites(agent), before);
  await world.stop();
});

function strangerWith(live: ReplicaSet, port: number): ReplicaSet {
  const { labels = {} } = live.metadata ?? {};
  const { template, ...spec } = live.spec ?? { selector: {} };
  const id = "d_stranger";
  const all = { ...labels, "unkey.com/deployment.id": id };
  return {
    metadata: { namespace: "acme", name: "stranger", labels: all },
    spec: {
      ...spec,
      replicas: 0,
      selector: { matchLabels: { "unkey.com/deployment.id": id } },
      template: {
        metadata: { labels: all },
        spec: {
          ...template?.spec,
          containers: [{ name: "deployment", image: "a", ports: [{ containerPort: port }] }],
        },
      },
    },
  };
}
