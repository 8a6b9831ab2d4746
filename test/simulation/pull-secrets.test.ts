// The credentials of the configured registry: there before the workload that needs them, and nowhere else (K7).
import assert from "node:assert/strict";
import { test } from "node:test";
import { Secret } from "../../src/config/secret.ts";
import { namespaces, secrets } from "../../src/kube/resources.ts";
import { SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const password = "s3cret-of-the-registry";
const registry = { host: "registry.example", username: "robot", password: new Secret(password) };
const settings = { secrets: { audience: "krane" }, registry };
const ref = { namespace: "acme", name: "krane-registry" };

test("the pull secret comes before the workload, for images of that registry alone", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  await world.setDeployment(2, { k8sNamespace: "other", image: "elsewhere.example/web:1" });
  const agent = await world.startAgent(settings);
  await world.until("both are there", async () => (await world.replicaSets()).length === 2);
  const kinds = agent.writes.filter(({ key }) => key.startsWith("acme/")).map(({ kind }) => kind);
  assert.ok(kinds.indexOf("Secret") < kinds.indexOf("ReplicaSet"), kinds.join());
  const found = await world.list(secrets);
  assert.deepEqual(
    found.map(({ metadata }) => metadata?.namespace),
    ["acme"],
  );
  const elsewhere = JSON.stringify([agent.controller.objects(), agent.controller.status()], (_, value) =>
    typeof value === "bigint" ? `${value}` : value,
  );
  assert.ok(!elsewhere.includes(password));
  await world.stop();
});

test("one that is removed or changed by hand is put right before long, and a restart writes none", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  const first = await world.startAgent(settings);
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  await world.api.delete(secrets, ref, {}, never);
  await world.until("it is back", async () => (await world.list(secrets)).length === 1, 720_000);
  await first.stop();
  const second = await world.startAgent(settings);
  await world.clock.advance(900_000);
  assert.deepEqual(second.writes, []);
  await world.stop();
});

test("a secret of that name that is not krane's is a conflict, and the workload waits", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(namespaces, { metadata: { name: "acme" } }, {}, never);
  await world.api.create(secrets, { metadata: ref, type: "Opaque" }, {}, never);
  await world.setDeployment(1);
  const agent = await world.startAgent(settings);
  await world.clock.advance(60_000);
  assert.deepEqual(await world.replicaSetNames(), []);
  const [troubled] = agent.controller.objects({ onlyTroubled: true });
  assert.match(troubled?.reason ?? "", /Secret acme\/krane-registry is not krane's/);
  await world.stop();
});

test("one with krane's marks that krane cannot make right is told, and the workload waits for its end", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(namespaces, { metadata: { name: "acme" } }, {}, never);
  const labels = { "app.kubernetes.io/managed-by": "krane", "app.kubernetes.io/component": "pull-secret" };
  const made = { metadata: { ...ref, labels }, type: "Opaque" };
  await world.api.apply(secrets, made, { fieldManager: "krane", force: false }, never);
  await world.setDeployment(1);
  const agent = await world.startAgent(settings);
  await world.clock.advance(60_000);
  assert.deepEqual(await world.replicaSetNames(), []);
  const [troubled] = agent.controller.objects({ onlyTroubled: true });
  assert.match(troubled?.reason ?? "", /^apply secrets acme\/krane-registry: 422 Invalid/);
  await world.api.delete(secrets, ref, {}, never);
  await world.until("it is there", async () => (await world.replicaSets()).length === 1, 720_000);
  await world.stop();
});
