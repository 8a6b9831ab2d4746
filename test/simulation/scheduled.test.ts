// What was ordered by a call lives beside what the stream brings: through restarts, resyncs and replays,
// until the stream names it or somebody orders it away.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { DeleteDeploymentSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { DeleteSentinelSchema } from "../../src/gen/ctrl/v1/sentinel_pb.ts";
import { appsDeployments, replicaSets } from "../../src/kube/resources.ts";
import { annotationKeys } from "../../src/model/labels.ts";
import { utf8 } from "../support/deployment-messages.ts";
import { applySentinel } from "../support/sentinel-messages.ts";
import { withoutEvents } from "./recording-kube-api.ts";
import { namesOf, objectNames, setSentinel, startSentinelAgent } from "./sentinel-agents.ts";
import { deployment, region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const halfHourMs = 1_800_000;
const first = { namespace: "acme", name: "web-1" };
const blob = utf8('{"secrets":{"TOKEN":"c2VhbGVk"}}');

interface Asked {
  readonly world: SimulatedRegion;
  /** The ids that the control plane was asked about. */
  readonly asked: Set<string>;
}

async function createWorld(): Promise<Asked> {
  const asked = new Set<string>();
  const listen: Interceptor = (next) => (call) => {
    const { deploymentId, sentinelId } = call.message as { deploymentId?: string; sentinelId?: string };
    if (/^GetDesired.*State$/.test(call.method.name)) asked.add(deploymentId ?? sentinelId ?? "");
    return next(call);
  };
  return { world: await SimulatedRegion.create({ interceptors: [listen], hasDigests: false }), asked };
}

async function annotationsOf(world: SimulatedRegion) {
  return (await world.api.get(replicaSets, first, {}, never))?.metadata?.annotations ?? {};
}

describe("a deployment that was ordered by a call", () => {
  test("lives through a restart, resyncs and replays without one write, and is never asked for", async () => {
    const { world, asked } = await createWorld();
    await world.setDeployment(2);
    const agent = await world.startAgent();
    const order = {
      message: deployment(1, { encryptedEnvironmentVariables: blob, command: ["serve"], port: 3000 }),
      readinessId: "rd_1",
    };
    const { outcome } = await world.resolved(agent.controller.apply(order.message, never, order.readinessId));
    assert.equal(outcome, "applied");
    await world.clock.advance(halfHourMs);
    await agent.stop();
    const next = await world.startAgent();
    await world.clock.advance(halfHourMs);
    assert.deepEqual(next.writes, []);
    assert.deepEqual(await world.replicaSetNames(), ["web-1", "web-2"]);
    assert.deepEqual([...asked], ["d_2"]);
    assert.deepEqual(next.controller.blockedDeletions(), []);
    assert.equal(next.controller.seen.get("acme/web-1")?.readinessId, "rd_1");
    await world.stop();
  });

  test("is kept as it was ordered after a restart, also where it was edited or deleted by hand", async () => {
    const { world } = await createWorld();
    const agent = await world.startAgent();
    const message = deployment(1, { encryptedEnvironmentVariables: blob, replicas: 2 });
    await world.resolved(agent.controller.apply(message, never));
    await agent.stop();
    await world.startAgent();
    const before = await world.api.get(replicaSets, first, {}, never);
    await world.api.apply(
      replicaSets,
      { metadata: first, spec: { replicas: 7 } } as never,
      { fieldManager: "kubectl", force: true },
      never,
    );
    const live = () => world.api.get(replicaSets, first, {}, never);
    await world.until("it is put right", async () => (await live())?.spec?.replicas === 2);
    await world.api.delete(replicaSets, first, {}, never);
    await world.until("it is back", async () => (await live()) !== undefined);
    assert.deepEqual((await live())?.spec, before?.spec);
    await world.stop();
  });

  test("yields to the stream once that names it, and is an ordinary one from then on", async () => {
    const { world, asked } = await createWorld();
    const agent = await world.startAgent();
    await world.resolved(agent.controller.apply(deployment(1), never, "r"));
    assert.equal((await annotationsOf(world))[annotationKeys.origin], "scheduler");
    await world.setDeployment(1, { replicas: 3 });
    await world.until(
      "the mark is gone",
      async () => !(annotationKeys.origin in (await annotationsOf(world))),
    );
    const annotations = await annotationsOf(world);
    assert.deepEqual(Object.keys(annotations), [annotationKeys.manifestHash, annotationKeys.seal]);
    await world.clock.advance(120_000);
    assert.deepEqual([...asked], ["d_1"]);
    await world.plane.admin.deleteDeployment(region, "d_1");
    await world.until("it is gone", async () => (await world.replicaSets()).length === 0);
    await world.stop();
  });

  test("holds against a replay of what it replaced, before a restart and after", async () => {
    const { world } = await createWorld();
    await world.setDeployment(1, { replicas: 1 });
    const agent = await world.startAgent();
    await world.until("it is there", async () => (await world.replicaSets()).length === 1);
    await world.resolved(agent.controller.apply(deployment(1, { replicas: 5 }), never));
    await world.clock.advance(halfHourMs);
    await agent.stop();
    const next = await world.startAgent();
    await world.clock.advance(halfHourMs);
    assert.deepEqual(next.writes, []);
    const [live] = await world.replicaSets();
    assert.equal(live?.spec?.replicas, 5);
    await world.stop();
  });

  test("yields to a control plane that was restored and counts from the start again", async () => {
    const { world } = await createWorld();
    for (const replicas of [1, 2, 3]) await world.setDeployment(1, { replicas });
    const agent = await world.startAgent();
    await world.until("it is there", async () => (await world.replicaSets()).length === 1);
    await world.resolved(agent.controller.apply(deployment(1, { replicas: 5 }), never));
    await agent.stop();
    world.plane.faults.restoreFromEmpty(region);
    await world.setDeployment(1, { replicas: 2 });
    await world.startAgent();
    await world.clock.advance(halfHourMs);
    const [live] = await world.replicaSets();
    assert.equal(live?.spec?.replicas, 2);
    await world.stop();
  });

  test("stays when a restored control plane does not know it", async () => {
    const { world } = await createWorld();
    await world.setDeployment(1, { replicas: 1 });
    const agent = await world.startAgent();
    await world.until("it is there", async () => (await world.replicaSets()).length === 1);
    await world.resolved(agent.controller.apply(deployment(1, { replicas: 5 }), never));
    await agent.stop();
    world.plane.faults.restoreFromEmpty(region);
    const next = await world.startAgent();
    await world.clock.advance(halfHourMs);
    assert.deepEqual(next.writes, []);
    assert.deepEqual(next.controller.blockedDeletions(), []);
    assert.deepEqual(await world.replicaSetNames(), ["web-1"]);
    await world.stop();
  });

  test("is gone at once when it is ordered away, and stays so", async () => {
    const { world } = await createWorld();
    const agent = await world.startAgent();
    await world.resolved(agent.controller.apply(deployment(1), never));
    await agent.stop();
    const next = await world.startAgent();
    const away = create(DeleteDeploymentSchema, { k8sNamespace: "acme", k8sName: "web-1" });
    const { outcome } = await world.resolved(next.controller.delete(away, never));
    assert.equal(outcome, "deleted");
    await world.clock.advance(halfHourMs);
    await next.stop();
    await world.startAgent();
    await world.clock.advance(120_000);
    assert.deepEqual(await world.replicaSetNames(), []);
    await world.stop();
  });

  test("is not reported to a control plane that never spoke of it", async () => {
    const { world } = await createWorld();
    const agent = await world.startAgent();
    await world.resolved(agent.controller.apply(deployment(1), never));
    await world.clock.advance(halfHourMs);
    assert.deepEqual(world.reported, []);
    await world.stop();
  });

  test("an order that cannot be understood changes nothing", async () => {
    const { world } = await createWorld();
    const agent = await world.startAgent();
    await world.resolved(agent.controller.apply(deployment(1), never));
    const before = await world.replicaSets();
    for (const order of [
      { message: deployment(1, { image: "" }) },
      { message: deployment(1, { replicas: 4 }), readinessId: "r".repeat(257) },
    ]) {
      const { outcome, isInvalid } = await world.resolved(
        agent.controller.apply(order.message, never, order.readinessId),
      );
      assert.deepEqual([outcome, isInvalid], ["parked", true]);
    }
    await world.clock.advance(120_000);
    assert.deepEqual(await world.replicaSets(), before);
    assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
    await world.stop();
  });

  test("is kept as it was ordered where its mark was edited while krane was away", async () => {
    const { world, asked } = await createWorld();
    const agent = await world.startAgent();
    await world.resolved(agent.controller.apply(deployment(1), never));
    await agent.stop();
    const before = await world.api.get(replicaSets, first, {}, never);
    await world.api.apply(
      replicaSets,
      { metadata: { ...first, annotations: { [annotationKeys.origin]: "somebody" } } },
      { fieldManager: "kubectl", force: true },
      never,
    );
    const next = await world.startAgent();
    await world.clock.advance(120_000);
    const after = await world.api.get(replicaSets, first, {}, never);
    assert.deepEqual(after?.spec, before?.spec);
    assert.equal((await annotationsOf(world))[annotationKeys.origin], "scheduler");
    assert.equal(withoutEvents(next.writes).length, 1);
    assert.deepEqual([...asked], []);
    await world.stop();
  });

  test("cannot be made of another one by writing its mark onto it", async () => {
    const { world, asked } = await createWorld();
    await world.setDeployment(1);
    const agent = await world.startAgent();
    await world.until("it is there", async () => (await world.replicaSets()).length === 1);
    await agent.stop();
    const annotations = { [annotationKeys.origin]: "scheduler" };
    const manifest = { metadata: { ...first, annotations } };
    await world.api.apply(replicaSets, manifest, { fieldManager: "kubectl", force: true }, never);
    world.plane.faults.restoreFromEmpty(region);
    const next = await world.startAgent();
    await world.clock.advance(halfHourMs);
    assert.deepEqual([...asked], ["d_1"]);
    assert.equal(next.controller.blockedDeletions().length, 1);
    await world.stop();
  });
});

describe("a sentinel that was ordered by a call", () => {
  test("lives through a restart, resyncs and replays without one write, and is never asked for", async () => {
    const { world, asked } = await createWorld();
    await setSentinel(world, 2);
    const agent = await startSentinelAgent(world);
    const message = applySentinel({ k8sName: "gate-1", sentinelId: "se_1" });
    const { outcome } = await world.resolved(agent.controller.apply(message, never));
    assert.equal(outcome, "applied");
    await world.clock.advance(halfHourMs);
    await agent.stop();
    const next = await startSentinelAgent(world);
    await world.clock.advance(halfHourMs);
    assert.deepEqual(next.writes, []);
    assert.deepEqual(await objectNames(world), [...namesOf(1), ...namesOf(2)].sort());
    assert.deepEqual([...asked], ["se_2"]);
    assert.ok(world.reportedSentinels.every(({ k8sName }) => k8sName === "gate-2"));
    const away = create(DeleteSentinelSchema, { k8sName: "gate-1" });
    assert.equal((await world.resolved(next.controller.delete(away, never))).outcome, "deleted");
    assert.deepEqual(await objectNames(world), namesOf(2));
    await world.stop();
  });

  test("yields to the stream once that names it", async () => {
    const { world } = await createWorld();
    const agent = await startSentinelAgent(world);
    const message = applySentinel({ k8sName: "gate-1", sentinelId: "se_1" });
    await world.resolved(agent.controller.apply(message, never));
    await setSentinel(world, 1, { replicas: 3 });
    const live = () => world.api.get(appsDeployments, { namespace: "sentinel", name: "gate-1" }, {}, never);
    await world.until("it is what the stream says", async () => (await live())?.spec?.replicas === 3);
    assert.deepEqual(Object.keys((await live())?.metadata?.annotations ?? {}), [
      annotationKeys.manifestHash,
      annotationKeys.seal,
    ]);
    await world.stop();
  });
});

test("instances let krane's namespace in while it may fetch documents, and no longer", async () => {
  const { world } = await createWorld();
  await world.setDeployment(1);
  const namespaces = async () => {
    const [policy] = await world.policies();
    const { ingress = [] } = (policy?.spec ?? {}) as {
      ingress?: { fromEndpoints: { matchLabels: Record<string, string> }[] }[];
    };
    return ingress.flatMap(({ fromEndpoints }) =>
      fromEndpoints.map(({ matchLabels }) => matchLabels["io.kubernetes.pod.namespace"]),
    );
  };
  const scraping = await world.startAgent({ scraperNamespace: "platform" });
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  assert.deepEqual(await namespaces(), ["sentinel", "platform"]);
  await scraping.stop();
  const other = await world.startAgent();
  await world.until("it is narrowed", async () => (await namespaces()).length === 1);
  assert.deepEqual(await namespaces(), ["sentinel"]);
  await world.clock.advance(120_000);
  assert.equal(other.writes.length, 1);
  await world.stop();
});
