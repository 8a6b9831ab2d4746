import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiServer } from "@krane/kube-apiserver";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { testSeal } from "../../../test/support/test-seal.ts";
import { createSeededRandom } from "../../concurrency/random.ts";
import { ciliumDefinition } from "../../dev/cilium-definition.ts";
import { createInProcessTransport } from "../../dev/in-process-transport.ts";
import { defineKind } from "../../engine/controller-definition.ts";
import { createKubeApi } from "../../kube/client.ts";
import type { CacheEntry } from "../../kube/object-cache.ts";
import { customResourceDefinitions, services } from "../../kube/resources.ts";
import { projectSentinelCompanion, type SentinelCompanionProjection } from "./projections.ts";
import { companionKeys, watchSentinelKinds } from "./watched-kinds.ts";

const never = new AbortController().signal;

function companion(name: string, hash: string): CacheEntry<SentinelCompanionProjection> {
  const value = projectSentinelCompanion({ metadata: { name, namespace: "sentinel" } }, services, testSeal);
  return { key: `sentinel/${name}`, uid: "1", resourceVersion: "1", hash, value };
}

test("a companion that comes, goes or changes in what krane sent concerns its sentinel; its status does not", () => {
  const before = companion("gate-gossip-lan", "a");
  const key = before.key;
  const gate = { reconcile: ["sentinel/gate"], report: [] };
  assert.deepEqual(companionKeys({ kind: "added", key, after: before }), gate);
  assert.deepEqual(companionKeys({ kind: "deleted", key, before }), gate);
  const after = companion("gate-gossip-lan", "b");
  assert.deepEqual(companionKeys({ kind: "changed", key, before, after }), gate);
  const same = companion("gate-gossip-lan", "a");
  assert.deepEqual(companionKeys({ kind: "changed", key, before, after: same }), {
    reconcile: [],
    report: [],
  });
});

test("whatever waits for the policies comes up as soon as the cluster has the kind, and once", async () => {
  const clock = new FakeClock();
  const random = createSeededRandom(1);
  const server = createApiServer({ clock, random });
  const api = createKubeApi(createInProcessTransport(server));
  const { policies } = watchSentinelKinds({ api, clock, random, seal: testSeal, onError: () => undefined });
  const kind = defineKind(policies, companionKeys, () => ["sentinel/gate"]);
  const heard: string[] = [];
  const unsubscribe = kind.subscribe(({ reconcile }) => heard.push(...reconcile));
  const stopping = new AbortController();
  const done = kind.run(stopping.signal);
  await clock.advance(60_000);
  assert.deepEqual([kind.required, kind.synced, policies.isMissing, heard], [false, false, true, []]);
  await api.create(customResourceDefinitions, ciliumDefinition, {}, never);
  await clock.advance(60_000);
  assert.deepEqual([kind.synced, heard], [true, ["sentinel/gate"]]);
  unsubscribe();
  stopping.abort();
  await done;
  server.stop();
});
