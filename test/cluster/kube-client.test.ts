// The client, reflector and cache against a real API server: what the stub servers of the other
// tests claim about it is true.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../src/concurrency/random.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { createCommandRunner } from "../../src/kube/command-runner.ts";
import { loadKubeEndpoint } from "../../src/kube/endpoint.ts";
import type { KubeApiError } from "../../src/kube/errors.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { listAll } from "../../src/kube/list-all.ts";
import { ObjectCache } from "../../src/kube/object-cache.ts";
import { Reflector } from "../../src/kube/reflector.ts";
import {
  configMaps,
  pods,
  replicaSets,
  serviceAccounts,
  tokenRequests,
  tokenReviews,
} from "../../src/kube/resources.ts";
import type { ResourceKind } from "../../src/kube/types.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { eventually } from "../support/eventually.ts";

const cluster = clusterUnderTest();
const clock = createSystemClock();
const apply = { fieldManager: "krane", force: false } as const;

async function connect(t: TestContext, kubeconfig = cluster.kubeconfigPath) {
  const signal = AbortSignal.timeout(60_000);
  const deps = {
    clock,
    readTextFile: (path: string) => readFile(path, "utf8"),
    runCommand: createCommandRunner({}),
  };
  const endpoint = await loadKubeEndpoint({ kubeconfig, env: {} }, deps, signal);
  const transport = createHttpTransport({ endpoint, connections: 8 }, { clock });
  t.after(() => transport.close());
  return { api: createKubeApi(transport), signal };
}

function replicaSet(namespace: string, name: string, replicas: number): ReplicaSet {
  const labels = { app: name };
  return {
    metadata: { namespace, name, labels },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: "app", image: "registry.example/app:1" }] },
      },
    },
  };
}

// The server reads the body of an apply as YAML, to which some characters are line breaks and others not text at all.
test("every character of a text arrives as it was applied", async (t) => {
  const { api, signal } = await connect(t);
  const namespace = await cluster.freshNamespace(t);
  const ref = { namespace, name: "texts" };
  const basic = Array.from({ length: 0x10000 }, (_, code) => code).filter(
    (code) => code < 0xd800 || code > 0xdfff,
  );
  const planes = [0x10000, 0x1f600, 0x1fffe, 0xe0041, 0xfffff, 0x10ffff];
  const all = [...basic, ...planes].map((code) => String.fromCodePoint(code));
  const data = {
    around: all.map((text) => `a ${text} b`).join(""),
    alone: all.join(""),
    ...{
      nel: "A\u0085B",
      folded: " \u2028 \u2029 ",
      marked: "\ufeffx\ufeff",
      tabs: "\t\r\n \0\u001f\u007f\u009f",
    },
  };
  const { object } = await api.apply(configMaps, { metadata: ref, data }, apply, signal);
  assert.deepEqual(object.data, data);
  assert.deepEqual((await api.get(configMaps, ref, {}, signal))?.data, data);
});

test("apply, get, list and delete do what they say", async (t) => {
  const { api, signal } = await connect(t);
  const namespace = await cluster.freshNamespace(t);
  const ref = { namespace, name: "web" };
  assert.equal(await api.get(replicaSets, ref, {}, signal), undefined);
  const created = await api.apply(replicaSets, replicaSet(namespace, "web", 0), apply, signal);
  assert.equal(created.kind, "created");
  const applied = await api.apply(replicaSets, replicaSet(namespace, "web", 0), apply, signal);
  assert.equal(applied.kind, "applied");
  assert.equal(applied.object.metadata?.uid, created.object.metadata?.uid);

  const found = await api.get(replicaSets, ref, { detail: "metadata" }, signal);
  assert.equal(found?.metadata?.name, "web");
  assert.equal(found?.spec, undefined);

  const wrongUid = api.delete(replicaSets, ref, { uid: "00000000-0000-0000-0000-000000000000" }, signal);
  await assert.rejects(wrongUid, (error: KubeApiError) => error.status === 409);
  const uid = created.object.metadata?.uid ?? assert.fail("no uid");
  assert.notEqual(
    (await api.delete(replicaSets, ref, { uid, propagation: "Background" }, signal)).kind,
    "absent",
  );
  await eventually("the ReplicaSet is gone", async () =>
    assert.deepEqual(await api.delete(replicaSets, ref, {}, signal), { kind: "absent" }),
  );
});

test("a kind and a namespace that are not there are errors with a reason; a conflict names the field", async (t) => {
  const { api, signal } = await connect(t);
  const namespace = await cluster.freshNamespace(t);
  const unknown: ResourceKind = {
    group: "example.com",
    version: "v1",
    kind: "X",
    plural: "xs",
    namespaced: true,
  };
  await assert.rejects(
    api.get(unknown, { namespace, name: "a" }, {}, signal),
    (e: KubeApiError) => e.status === 404,
  );
  await assert.rejects(
    api.apply(replicaSets, replicaSet("not-there", "web", 0), apply, signal),
    (error: KubeApiError) => error.status === 404 && error.reason === "NotFound",
  );
  await api.apply(replicaSets, replicaSet(namespace, "web", 0), apply, signal);
  const other = { ...apply, fieldManager: "somebody-else" };
  await assert.rejects(
    api.apply(replicaSets, replicaSet(namespace, "web", 2), other, signal),
    (error: KubeApiError) =>
      error.status === 409 && error.causes.some((cause) => cause.field === ".spec.replicas"),
  );
});

test("pages of a list add up", async (t) => {
  const { api, signal } = await connect(t);
  const namespace = await cluster.freshNamespace(t);
  const names = Array.from({ length: 7 }, (_, index) => `c${index}`);
  await Promise.all(
    names.map((name) =>
      api.apply(configMaps, { metadata: { namespace, name, labels: { page: "yes" } } }, apply, signal),
    ),
  );
  const selection = { namespace, labelSelector: "page=yes" };
  const first = await api.list(configMaps, { ...selection, limit: 3 }, signal);
  assert.equal(first.items.length, 3);
  const token = first.continue ?? assert.fail("no continue token");
  assert.equal(
    (await api.list(configMaps, { ...selection, limit: 3, continue: token }, signal)).items.length,
    3,
  );
  const all = await listAll(api, configMaps, selection, (object) => object.metadata?.name, signal);
  assert.deepEqual([...all.items].sort(), names);
});

test("a token of a service account is reviewed; nonsense is not authenticated", async (t) => {
  const { api, signal } = await connect(t);
  const namespace = await cluster.freshNamespace(t);
  const ref = { namespace, name: "default" };
  assert.notEqual(await api.get(serviceAccounts, ref, {}, signal), undefined);
  const asked = { spec: { audiences: ["krane"], expirationSeconds: 600 } };
  const issued = await api.create(tokenRequests, asked, { subresource: "token", ref }, signal);
  const token = issued.status?.token ?? assert.fail("no token");
  const review = await api.create(tokenReviews, { spec: { token, audiences: ["krane"] } }, {}, signal);
  assert.equal(review.status?.authenticated, true);
  assert.equal(review.status?.user?.username, `system:serviceaccount:${namespace}:default`);
  const refused = await api.create(tokenReviews, { spec: { token: "x", audiences: ["krane"] } }, {}, signal);
  assert.notEqual(refused.status?.authenticated, true);
});

test("a cache follows the server through changes, and a writer can wait for its own write", async (t) => {
  const { api, signal } = await connect(t);
  const namespace = await cluster.freshNamespace(t);
  await api.apply(replicaSets, replicaSet(namespace, "web", 3), apply, signal);
  const cache = new ObjectCache({
    project: (pod: Pod) => ({ app: pod.metadata?.labels?.["app"], node: pod.spec?.nodeName }),
    indexes: { app: (value) => value.app },
  });
  const errors: KubeApiError[] = [];
  const stop = new AbortController();
  const reflector = new Reflector(
    { kind: pods, selection: { namespace }, cache, onError: (error) => errors.push(error) },
    { api, clock, random: createSystemRandom() },
  );
  const done = reflector.run(stop.signal);
  await cache.whenSynced(signal);
  await eventually("the pods of the ReplicaSet are cached", () =>
    assert.equal(cache.byIndex("app", "web").length, 3),
  );
  const written = await api.apply(
    pods,
    {
      metadata: { namespace, name: "own", labels: { app: "own" } },
      spec: { containers: [{ name: "a", image: "i" }] },
    },
    apply,
    signal,
  );
  await cache.waitFor(written.object.metadata?.resourceVersion ?? "", signal);
  assert.equal(cache.get(`${namespace}/own`)?.uid, written.object.metadata?.uid);

  await api.delete(replicaSets, { namespace, name: "web" }, { propagation: "Background" }, signal);
  await eventually("the pods went with their ReplicaSet", () =>
    assert.equal(cache.byIndex("app", "web").length, 0),
  );
  assert.equal(cache.get(`${namespace}/own`)?.value.app, "own");
  assert.deepEqual(errors, []);
  stop.abort();
  await done;
});

test("a list from the future is refused as such", async (t) => {
  const { api, signal } = await connect(t);
  const future = { resourceVersion: "999999999999", resourceVersionMatch: "NotOlderThan" } as const;
  await assert.rejects(
    api.list(pods, future, signal),
    (error: KubeApiError) =>
      error.status === 504 && error.causes.some((cause) => cause.reason === "ResourceVersionTooLarge"),
  );
});

test("a token without rights is refused with 403", async (t) => {
  const { api, signal } = await connect(t, cluster.agentKubeconfigPath);
  const namespace = await cluster.freshNamespace(t);
  await assert.rejects(
    api.list(configMaps, { namespace }, signal),
    (error: KubeApiError) => error.status === 403,
  );
});
