// Every deletion and every repair is one log line and one Event, with its authority or its cause, and without secrets.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Event } from "kubernetes-types/core/v1.js";
import { Secret } from "../../src/config/secret.ts";
import { events, replicaSets, secrets } from "../../src/kube/resources.ts";
import { createKeptLog, type KeptLog } from "../support/kept-log.ts";
import { type SimulatedAgent, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web-1" };
const password = "s3cret-of-the-registry";
const registry = { host: "registry.example", username: "robot", password: new Secret(password) };
const settings = { secrets: { audience: "krane" }, registry };

interface World {
  readonly world: SimulatedRegion;
  readonly agent: SimulatedAgent;
  readonly kept: KeptLog;
}

async function withDeployments(count = 1, options: Parameters<SimulatedRegion["startAgent"]>[0] = {}) {
  const kept = createKeptLog();
  const world = await SimulatedRegion.create({ log: kept.log });
  for (let index = 1; index <= count; index++) await world.setDeployment(index);
  const agent = await world.startAgent(options);
  await world.until("all are there", () => agent.controller.status().stream?.cursor === BigInt(count));
  await world.clock.advance(2_000);
  return { world, agent, kept };
}

async function live(world: SimulatedRegion): Promise<ReplicaSet> {
  const found = await world.api.get(replicaSets, ref, {}, never);
  assert.ok(found);
  return found;
}

async function eventsOf({ world }: Pick<World, "world">, reason: string): Promise<readonly Event[]> {
  return (await world.list(events)).filter((event) => event.reason === reason);
}

/** As `kubectl scale` does it. */
async function scale(world: SimulatedRegion, replicas: number): Promise<void> {
  const operations = [{ op: "replace", path: "/spec/replicas", value: replicas }] as const;
  const options = { fieldManager: "kubectl", subresource: "scale" };
  await world.api.patch(replicaSets, await live(world), operations, options, never);
}

/** As `kubectl edit` does it. */
async function edit(world: SimulatedRegion, path: string, value: unknown): Promise<void> {
  const options = { fieldManager: "kubectl-edit" };
  await world.api.patch(replicaSets, await live(world), [{ op: "replace", path, value }], options, never);
}

async function whenRepaired(world: SimulatedRegion): Promise<void> {
  await world.until("it is repaired", async () => (await live(world)).spec?.replicas === 1);
  await world.clock.advance(2_000);
}

test("a single repair names the field, both values, and the manager that wrote it through a subresource", async () => {
  const { world, kept } = await withDeployments(1, { resyncMs: 0, replayMs: 0 });
  const extra = { metadata: { ...ref, labels: { team: "a" } } };
  await world.api.apply(replicaSets, extra, { fieldManager: "labeller", force: false }, never);
  await world.clock.advance(60_000);
  await scale(world, 5);
  await whenRepaired(world);
  const [line, ...more] = kept.of("repaired an object");
  assert.deepEqual(more, []);
  const { uid } = (await live(world)).metadata ?? {};
  const expected = {
    level: "warn",
    controller: "deployments",
    key: "acme/web-1",
    operation: "repair",
    kind: "ReplicaSet",
    namespace: "acme",
    name: "web-1",
    uid,
    field: "spec.replicas",
    before: "5",
    after: "1",
    fieldManager: "kubectl",
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(line?.[name], value, name);
  const [event, ...others] = await eventsOf({ world }, "Repaired");
  assert.deepEqual(others, []);
  assert.equal(event?.involvedObject.uid, uid);
  assert.match(
    event?.message ?? "",
    /^krane repaired this object: spec\.replicas: 5 -> 1, changed by field manager "kubectl" through subresource scale at /,
  );
  await world.stop();
});

test("a repair after a restart is recorded too, and a new version is not a repair", async () => {
  const { world, agent, kept } = await withDeployments();
  await world.setDeployment(1, { replicas: 1, cpuMillicores: 700n });
  await world.until("it is applied", () => agent.controller.status().stream?.cursor === 2n);
  await agent.stop();
  await scale(world, 4);
  await world.startAgent();
  await whenRepaired(world);
  assert.deepEqual(
    kept.of("repaired an object").map(({ field, before, fieldManager }) => [field, before, fieldManager]),
    [["spec.replicas", "4", "kubectl"]],
  );
  assert.equal((await eventsOf({ world }, "Repaired")).length, 1);
  await world.stop();
});

test("values that may be secret are in no log line and no Event", async () => {
  const { world, kept } = await withDeployments(1, { ...settings, resyncMs: 0, replayMs: 0 });
  const container = "/spec/template/spec/containers/0";
  await edit(world, `${container}/env/0/value`, "canary-of-env");
  await world.until("it is repaired", async () => kept.of("repaired an object").length === 1);
  const [line] = kept.of("repaired an object");
  assert.match(
    String(line?.["field"]),
    /^spec\.template\.spec\.containers\[name="deployment"\]\.env\[name=".+"\]\.value$/,
  );
  assert.deepEqual([line?.["before"], line?.["after"]], ["[redacted]", "[redacted]"]);
  const written = await live(world);
  const env = written.spec?.template?.spec?.containers[0]?.env ?? [];
  await world.clock.advance(2_000);
  const texts = JSON.stringify([line, await eventsOf({ world }, "Repaired")]);
  assert.match(texts, /krane repaired this object/);
  for (const secret of ["canary-of-env", password, ...env.map(({ value }) => value ?? "missing")])
    assert.ok(secret.length < 5 || !texts.includes(secret), secret);
  await world.stop();
});

test("a pull secret that was edited or removed is recorded without its content", async () => {
  const { world, kept } = await withDeployments(1, settings);
  const secretRef = { namespace: "acme", name: "krane-registry" };
  const found = await world.api.get(secrets, secretRef, {}, never);
  assert.ok(found);
  const data = Buffer.from(JSON.stringify({ auths: { canary: {} } })).toString("base64");
  const patch = [{ op: "replace", path: "/data/.dockerconfigjson", value: data }] as const;
  await world.api.patch(secrets, found, patch, { fieldManager: "kubectl-edit" }, never);
  await world.until("it is repaired", () => kept.of("repaired an object").length === 1, 720_000);
  const [line] = kept.of("repaired an object");
  assert.deepEqual(
    [line?.["kind"], line?.["field"], line?.["before"], line?.["after"], line?.["fieldManager"]],
    ["Secret", 'data[".dockerconfigjson"]', "[redacted]", "[redacted]", "kubectl-edit"],
  );
  await world.api.delete(secrets, secretRef, {}, never);
  await world.until("it is back", () => kept.of("recreated an object").length === 1, 720_000);
  await world.clock.advance(2_000);
  const texts = JSON.stringify([kept.lines, await world.list(events)]);
  for (const text of [password, data, found.data?.[".dockerconfigjson"] ?? "missing"])
    assert.ok(!texts.includes(text));
  await world.stop();
});

test("an object that somebody deleted is recorded as recreated; one that krane deleted is not", async () => {
  const { world, kept } = await withDeployments();
  await world.api.delete(replicaSets, ref, {}, never);
  await world.until("it is back", async () => (await world.replicaSets()).length === 1);
  await world.clock.advance(2_000);
  assert.equal(kept.of("recreated an object").length, 1);
  const [event] = await eventsOf({ world }, "Recreated");
  assert.equal(event?.involvedObject.uid, (await live(world)).metadata?.uid);
  await world.plane.admin.deleteDeployment("local.dev", "d_1");
  await world.until("it is gone", async () => (await world.replicaSets()).length === 0);
  await world.setDeployment(1);
  await world.until("it is wanted again", async () => (await world.replicaSets()).length === 1);
  await world.clock.advance(2_000);
  assert.equal(kept.of("recreated an object").length, 1);
  await world.stop();
});

test("a deletion says on whose authority it was made", async () => {
  const world = await withDeployments(8);
  const { plane, clock } = world.world;
  await clock.advance(301_000);
  await plane.admin.deleteDeployment("local.dev", "d_1");
  await plane.admin.forgetDeployment("local.dev", "d_2");
  await world.world.until(
    "both are gone",
    async () => (await world.world.replicaSets()).length === 6,
    600_000,
  );
  for (const index of [3, 4, 5]) await plane.admin.forgetDeployment("local.dev", `d_${index}`);
  const held = () => world.agent.controller.blockedDeletions();
  await world.world.until("the budget holds one back", () => held().length === 1, 400_000);
  world.agent.controller.releaseDeletion(held()[0]?.key ?? "");
  await world.world.until("it is gone", async () => (await world.world.replicaSets()).length === 3);
  await clock.advance(2_000);

  const lines = world.kept.of("deleted an object").filter(({ kind }) => kind === "ReplicaSet");
  const authorities = lines.map(({ authority }) => authority);
  const absence = "confirmed absence";
  assert.deepEqual(authorities, ["explicit delete", absence, absence, absence, "operator release"]);
  assert.equal(lines[0]?.["reason"], "the control plane ordered it with version 9");
  assert.equal(lines[1]?.["reason"], "the control plane did not know it in 3 resync passes in a row");
  assert.deepEqual(
    lines.map(({ level }) => level),
    ["info", "warn", "warn", "warn", "warn"],
  );
  const told = (await eventsOf(world, "Deleted")).filter(
    ({ involvedObject }) => involvedObject.kind === "ReplicaSet",
  );
  assert.deepEqual(
    told.map(({ involvedObject, type }) => [involvedObject.name, involvedObject.uid, type]).sort(),
    lines.map(({ name, uid, level }) => [name, uid, level === "info" ? "Normal" : "Warning"]).sort(),
  );
  assert.match(
    told.find(({ type }) => type === "Normal")?.message ?? "",
    /Authority: explicit delete \(the control plane/,
  );
  await world.world.stop();
});

test("a fight leads to few Events, which say how many repairs they stand for", async () => {
  const { world, kept } = await withDeployments(1, { resyncMs: 0, replayMs: 0 });
  for (let round = 0; round < 600; round++) {
    await scale(world, 5 + (round % 2));
    await world.clock.advance(1_000);
  }
  await world.clock.advance(600_000);
  const repairs = kept.of("repaired an object").length;
  assert.ok(repairs >= 3, `${repairs} repairs`);
  const told = await eventsOf({ world }, "Repaired");
  assert.ok(told.length <= 15, `${told.length} Events`);
  assert.equal(
    told.reduce((sum, { count = 0 }) => sum + count, 0),
    repairs,
  );
  await world.stop();
});

test("an object that a finalizer holds is recorded once, as being deleted", async () => {
  const { world, kept } = await withDeployments();
  const held = { metadata: { ...ref, finalizers: ["example.com/hold"] } };
  await world.api.apply(replicaSets, held, { fieldManager: "holder", force: false }, never);
  await world.plane.admin.deleteDeployment("local.dev", "d_1");
  await world.clock.advance(300_000);
  const lines = kept.of("deleted an object").filter(({ kind }) => kind === "ReplicaSet");
  assert.deepEqual(
    lines.map(({ outcome }) => outcome),
    ["deleting"],
  );
  const [event] = (await eventsOf({ world }, "Deleted")).filter(
    ({ involvedObject }) => involvedObject.kind === "ReplicaSet",
  );
  assert.match(event?.message ?? "", /it is still being deleted\. Authority: explicit delete/);
  await world.stop();
});

test("a seal that was removed or changed is a repair; sealing an adopted object is not", async () => {
  const { world, agent, kept } = await withDeployments(1, { resyncMs: 0, replayMs: 0 });
  const path = "/metadata/annotations/krane.unkey.com~1seal";
  const sealOf = async () => (await live(world)).metadata?.annotations?.["krane.unkey.com/seal"];
  const strip = async () =>
    world.api.patch(
      replicaSets,
      await live(world),
      [{ op: "remove", path }],
      { fieldManager: "kubectl-edit" },
      never,
    );
  const isSealed = async () => !["forged", undefined].includes(await sealOf());
  await strip();
  await world.until("it is sealed again", isSealed, 600_000);
  await edit(world, path, "forged");
  await world.until("it is sealed again", isSealed, 600_000);
  await world.clock.advance(2_000);
  const field = 'metadata.annotations["krane.unkey.com/seal"]';
  assert.deepEqual(
    kept.of("repaired an object").map((line) => [line["field"], line["before"], line["fieldManager"]]),
    [
      [field, "absent", "unknown"],
      [field, "[redacted]", "kubectl-edit"],
    ],
  );
  await agent.stop();
  await strip();
  await world.startAgent();
  await world.until("it is sealed once more", isSealed, 600_000);
  await world.clock.advance(2_000);
  // After a restart, an object that lost its seal looks like one that an older krane left.
  assert.equal(kept.of("repaired an object").length, 2);
  await world.stop();
});
