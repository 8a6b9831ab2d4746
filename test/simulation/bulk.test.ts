// Many deployments at once, and what they may not cost; and the passes that come round by themselves.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { Interceptor } from "@connectrpc/connect";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import type { WatchDeploymentsRequest } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { objectPath } from "../../src/kube/client.ts";
import { namespaces, replicaSets } from "../../src/kube/resources.ts";
import { putObject } from "../support/hand-edits.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;

/** How many requests of a verb the agents have made for a kind. */
async function requestsOf(world: SimulatedRegion, verb: string, resource: string): Promise<number> {
  const metrics = await world.metrics.snapshot();
  const points = metrics.flatMap((metric) =>
    metric.name === "unkey_krane_k8s_requests_total" && metric.type === "counter" ? metric.points : [],
  );
  return points
    .filter(({ labels }) => labels["verb"] === verb && labels["resource"] === resource)
    .reduce((sum, { value }) => sum + value, 0);
}

test("deployments that come at once are written once each, and nothing else is asked or written", async () => {
  const world = await SimulatedRegion.create();
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  for (let index = 0; index < 60; index++)
    await world.setDeployment(index, { k8sNamespace: `acme-${index % 3}` });
  await world.until("all are there", async () => (await world.replicaSets()).length === 60);
  await world.clock.advance(120_000);
  const written = new Map<string, number>();
  for (const { verb, kind } of agent.writes)
    written.set(`${verb} ${kind}`, (written.get(`${verb} ${kind}`) ?? 0) + 1);
  assert.deepEqual(Object.fromEntries(written), {
    "create Namespace": 3,
    "apply CiliumNetworkPolicy": 3,
    "apply ReplicaSet": 60,
  });
  assert.equal(await requestsOf(world, "get", "replicaset"), 0);
  await world.stop();
});

test("in a namespace that was there before, a name is looked up before it is used", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(namespaces, { metadata: { name: "acme" } }, {}, never);
  await world.startAgent({ resyncMs: 0, replayMs: 0 });
  await world.setDeployment(1);
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  assert.equal(await requestsOf(world, "get", "replicaset"), 1);
  await world.stop();
});

test("a stranger who is faster in a namespace that krane has just made keeps what it has (K4)", async () => {
  const world = await SimulatedRegion.create();
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  await world.setDeployment(1);
  await world.until("the namespace is krane's", async () => (await world.replicaSets()).length === 1);
  const labels = { app: "other" };
  const stranger: ReplicaSet = {
    metadata: { name: "web-2", namespace: "acme" },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "a", image: "b" }] } },
    },
  };
  const before = await world.api.create(replicaSets, stranger, {}, never);
  await world.setDeployment(2);
  await world.until("the conflict is seen", () => agent.controller.status().conflicts === 1);
  assert.deepEqual(await world.api.get(replicaSets, { namespace: "acme", name: "web-2" }, {}, never), before);
  await world.stop();
});

test("an object that loses krane's label moments after it was made gets it back", async () => {
  const world = await SimulatedRegion.create();
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  await world.setDeployment(1);
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  const [live] = await world.replicaSets();
  assert.ok(live?.metadata?.labels);
  const { "app.kubernetes.io/managed-by": _, ...labels } = live.metadata.labels;
  const edited = { ...live, metadata: { ...live.metadata, labels } };
  const path = objectPath(replicaSets, { namespace: "acme", name: "web-1" });
  assert.ok(await putObject(createInProcessTransport(world.server), path, edited, never));
  await world.until("the label is back", async () => {
    const [repaired] = await world.replicaSets();
    return isDeepStrictEqual(repaired?.metadata?.labels, live.metadata?.labels);
  });
  assert.equal(agent.controller.status().conflicts, 0);
  await world.stop();
});

test("objects are told in pages, in the order of their keys", async () => {
  const world = await SimulatedRegion.create();
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  for (let index = 1; index <= 5; index++) await world.setDeployment(index);
  await world.setDeployment(6, { image: "not an image" });
  await world.until("all are settled", () => agent.controller.status().stream?.cursor === 6n);
  const keys = (filter: Parameters<typeof agent.controller.objects>[0]) =>
    agent.controller.objects(filter).map(({ key }) => key);
  const all = keys({});
  assert.deepEqual(all, [...all].sort());
  assert.deepEqual(keys({ limit: 2 }), all.slice(0, 2));
  assert.deepEqual(keys({ after: all[1], limit: 3 }), all.slice(2, 5));
  assert.deepEqual(keys({ after: all.at(-1) }), []);
  assert.deepEqual(keys({ onlyTroubled: true, limit: 9 }), ["acme/web-6"]);
  const [parked] = agent.controller.objects({ onlyTroubled: true });
  assert.equal(parked?.outcome, ObjectStatus_Outcome.PARKED);
  await world.stop();
});

test("without digests every minute each object is asked for, and within ten minutes the stream starts again from 0", async () => {
  const questions: number[] = [];
  const openings: { readonly atMs: number; readonly version: bigint }[] = [];
  const listen: Interceptor = (next) => async (call) => {
    const { name } = call.method;
    if (name === "GetDesiredDeploymentState") questions.push(world.clock.nowMs());
    if (name !== "WatchDeployments" || !call.stream) return next(call);
    const noted = async function* (messages: AsyncIterable<unknown>) {
      for await (const message of messages) {
        const { versionLastSeen } = message as WatchDeploymentsRequest;
        openings.push({ atMs: world.clock.nowMs(), version: versionLastSeen });
        yield message;
      }
    };
    return next({ ...call, message: noted(call.message) } as typeof call);
  };
  const world = await SimulatedRegion.create({ interceptors: [listen], hasDigests: false });
  for (let index = 1; index <= 3; index++) await world.setDeployment(index);
  await world.startAgent();
  await world.until("all are there", async () => (await world.replicaSets()).length === 3);
  const startedMs = openings.splice(0)[0]?.atMs ?? 0;
  await world.clock.advance(30_000);
  questions.length = 0;
  await world.clock.advance(1_800_000);
  assert.equal(questions.length, 3 * 30);
  const passes = [...new Set(questions)];
  assert.ok(passes.every((atMs, index) => Math.abs(atMs - startedMs - 60_000 * (index + 1)) < 2_000));
  assert.ok(openings.length >= 3 && openings.length <= 4, `${openings.length} openings in 30 minutes`);
  let beforeMs = startedMs;
  for (const { atMs, version } of openings) {
    assert.equal(version, 0n);
    assert.ok(atMs - beforeMs >= 470_000 && atMs - beforeMs <= 600_000, `after ${atMs - beforeMs} ms`);
    beforeMs = atMs;
  }
  assert.equal((await world.plane.admin.deploymentReport(region, "d_1"))?.exists, true);
  await world.stop();
});
