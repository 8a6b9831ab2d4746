import assert from "node:assert/strict";
import { test } from "node:test";
import { administrator, createApiServer } from "../api-server.ts";
import { type JsonObject, listAt, stringAt, valueAt } from "../json.ts";
import type { ApiRequest, WholeResponse } from "../request.ts";
import { createSeededRandom, FakeClock } from "../testing.ts";

const core = "/api/v1/namespaces/default";

function start() {
  const clock = new FakeClock();
  const server = createApiServer({ clock, random: createSeededRandom(7) });
  const ask = (request: ApiRequest) =>
    server.handle({ ...request, user: administrator }) as WholeResponse & { readonly body: JsonObject };
  const post = (path: string, body: JsonObject) => ask({ method: "POST", path, body });
  const merge = (path: string, body: JsonObject) =>
    ask({ method: "PATCH", path, contentType: "application/merge-patch+json", body });
  post(`${core}/serviceaccounts`, {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: "default" },
  });
  const spec = { containers: [{ name: "c", image: "i" }], automountServiceAccountToken: false };
  const pod = post(`${core}/pods`, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", labels: { app: "p" } },
    spec,
  });
  assert.equal(pod.status, 201);
  return { clock, server, ask, post, merge };
}

function binding(node: string): JsonObject {
  return { apiVersion: "v1", kind: "Binding", metadata: { name: "p" }, target: { kind: "Node", name: node } };
}

function tokenRequest(spec: JsonObject): JsonObject {
  return { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
}

test("a pod can be bound only once", () => {
  const { ask, post } = start();
  assert.equal(post(`${core}/pods/p/binding`, binding("n1")).status, 201);
  const { body } = ask({ method: "GET", path: `${core}/pods/p` });
  assert.equal(valueAt(body, "spec", "nodeName"), "n1");
  const again = post(`${core}/pods/p/binding`, binding("n2"));
  assert.equal(again.status, 409);
  assert.match(String(again.body["message"]), /pod p is already assigned to node "n1"$/);
});

test("the log of a pod says that no containers run, and with which exit code one ended", () => {
  const { ask, merge } = start();
  const logOf = (query = {}) => ask({ method: "GET", path: `${core}/pods/p/log`, query });
  const quiet = "this cluster is simulated and runs no containers, so container c has no output";
  assert.deepEqual([logOf().status, logOf().body], [200, `${quiet}\n`]);
  const terminated = { exitCode: 3 };
  const containerStatuses = [{ name: "c", ready: false, restartCount: 1, lastState: { terminated } }];
  merge(`${core}/pods/p/status`, { status: { containerStatuses } });
  assert.equal(logOf({ container: "c" }).body, `${quiet}; its simulated program ended with exit code 3\n`);
  assert.equal(logOf({ container: "other" }).status, 400);
  assert.equal(ask({ method: "GET", path: `${core}/pods/none/log` }).status, 404);
  assert.equal(ask({ method: "POST", path: `${core}/pods/p/log`, body: {} }).status, 405);
});

test("a log that is followed stays open until its pod is deleted, and has times if they are asked for", async () => {
  const { server, ask } = start();
  const follow = () => {
    const query = { follow: "true", timestamps: "true" };
    const path = `${core}/pods/p/log`;
    const log = server.handle({ method: "GET", path, query, user: administrator });
    assert.ok(log.kind === "stream" && log.isText);
    return { log, values: log.values[Symbol.asyncIterator]() };
  };
  const [deleted, closed] = [follow(), follow()];
  assert.match(
    String((await deleted.values.next()).value),
    /^2026-01-01T00:00:00Z this cluster is simulated/,
  );
  ask({ method: "DELETE", path: `${core}/pods/p`, body: { gracePeriodSeconds: 0 } });
  assert.equal((await deleted.values.next()).done, true);
  closed.log.close();
  await closed.values.next();
  assert.equal((await closed.values.next()).done, true);
  assert.equal(server.faults.openWatches, 0);
});

test("a bound pod has the labels of the binding, overridden by the zone of its node", () => {
  const { ask, post } = start();
  const labels = { "topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", disk: "fast" };
  post("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: "n1", labels } });
  const metadata = { name: "p", labels: { "topology.kubernetes.io/zone": "elsewhere", rack: "1" } };
  assert.equal(post(`${core}/pods/p/binding`, { ...binding("n1"), metadata }).status, 201);
  const { body } = ask({ method: "GET", path: `${core}/pods/p` });
  assert.deepEqual(valueAt(body, "metadata", "labels"), {
    app: "p",
    rack: "1",
    "topology.kubernetes.io/zone": "z",
    "topology.kubernetes.io/region": "r",
  });
});

test("a scheduled pod gets a grace period, and an unscheduled one is deleted immediately", () => {
  const { ask, post, clock } = start();
  post(`${core}/pods/p/binding`, binding("n1"));
  const deleting = ask({ method: "DELETE", path: `${core}/pods/p` });
  assert.equal(valueAt(deleting.body, "metadata", "deletionTimestamp"), "2026-01-01T00:00:30Z");
  assert.equal(valueAt(deleting.body, "metadata", "deletionGracePeriodSeconds"), 30);
  const longer = ask({ method: "DELETE", path: `${core}/pods/p`, body: { gracePeriodSeconds: 60 } });
  assert.deepEqual(longer.body, deleting.body);
  const shorter = ask({ method: "DELETE", path: `${core}/pods/p`, body: { gracePeriodSeconds: 5 } });
  assert.equal(valueAt(shorter.body, "metadata", "deletionTimestamp"), "2026-01-01T00:00:05Z");
  ask({ method: "DELETE", path: `${core}/pods/p`, body: { gracePeriodSeconds: 0 } });
  assert.equal(ask({ method: "GET", path: `${core}/pods/p` }).status, 404);
  assert.equal(clock.timerCount, 0);
});

test("an eviction respects the disruption budget", () => {
  const { ask, post, merge } = start();
  merge(`${core}/pods/p/status`, {
    status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
  });
  const budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
  const spec = { minAvailable: 1, selector: { matchLabels: { app: "p" } } };
  post(budgets, { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "b" }, spec });
  const status = {
    observedGeneration: 1,
    currentHealthy: 1,
    desiredHealthy: 1,
    expectedPods: 1,
    disruptionsAllowed: 0,
  };
  merge(`${budgets}/b/status`, { status });
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name: "p", namespace: "default" },
  };
  const refused = post(`${core}/pods/p/eviction`, eviction);
  assert.equal(refused.status, 429);
  assert.deepEqual(listAt(refused.body, "details", "causes"), [
    {
      reason: "DisruptionBudget",
      message: "The disruption budget b needs 1 healthy pods and has 1 currently",
    },
  ]);
  merge(`${budgets}/b/status`, { status: { disruptionsAllowed: 1 } });
  assert.equal(post(`${core}/pods/p/eviction`, eviction).status, 201);
  assert.equal(ask({ method: "GET", path: `${core}/pods/p` }).status, 404);
  assert.equal(valueAt(ask({ method: "GET", path: `${budgets}/b` }).body, "status", "disruptionsAllowed"), 0);
});

test("a token identifies its owner while its pod exists, for its audience and lifetime", async () => {
  const { ask, post, clock } = start();
  const boundObjectRef = { kind: "Pod", apiVersion: "v1", name: "p" };
  const request = tokenRequest({ audiences: ["krane"], expirationSeconds: 600, boundObjectRef });
  const issued = post(`${core}/serviceaccounts/default/token`, request);
  assert.equal(issued.status, 201);
  assert.equal(valueAt(issued.body, "status", "expirationTimestamp"), "2026-01-01T00:10:00Z");
  const token = stringAt(issued.body, "status", "token") ?? "";
  const review = (spec: JsonObject) => {
    const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec };
    return valueAt(post("/apis/authentication.k8s.io/v1/tokenreviews", body).body, "status") as JsonObject;
  };
  const good = review({ token, audiences: ["krane", "other"] });
  assert.equal(good["authenticated"], true);
  assert.deepEqual(good["audiences"], ["krane"]);
  assert.equal(stringAt(good, "user", "username"), "system:serviceaccount:default:default");
  assert.deepEqual(valueAt(good, "user", "extra", "authentication.kubernetes.io/pod-name"), ["p"]);
  for (const spec of [
    { token },
    { token, audiences: ["other"] },
    { token: `${token}x`, audiences: ["krane"] },
  ]) {
    const refused = review(spec);
    assert.equal(Object.hasOwn(refused, "authenticated"), false);
    assert.match(String(refused["error"]), /invalid bearer token/);
  }
  await clock.advance(600_000);
  assert.match(String(review({ token, audiences: ["krane"] })["error"]), /expired/);
  const second = post(`${core}/serviceaccounts/default/token`, request);
  const fresh = stringAt(second.body, "status", "token") ?? "";
  ask({ method: "DELETE", path: `${core}/pods/p` });
  assert.match(String(review({ token: fresh, audiences: ["krane"] })["error"]), /invalidated/);
});

test("a token is not issued for too short a lifetime or for a missing pod", () => {
  const { post } = start();
  const path = `${core}/serviceaccounts/default/token`;
  assert.equal(post(path, tokenRequest({ expirationSeconds: 60 })).status, 422);
  const boundObjectRef = { kind: "Pod", apiVersion: "v1", name: "none" };
  assert.equal(post(path, tokenRequest({ boundObjectRef })).status, 404);
  assert.equal(post(`${core}/serviceaccounts/none/token`, tokenRequest({})).status, 404);
});

test("scaling changes the replicas and is owned by the scale endpoint", () => {
  const { ask, post, merge } = start();
  const sets = "/apis/apps/v1/namespaces/default/replicasets";
  const labels = { app: "r" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } };
  const spec = { replicas: 0, selector: { matchLabels: labels }, template };
  post(sets, { apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: "r" }, spec });
  const { body } = merge(`${sets}/r/scale`, { spec: { replicas: 2 } });
  assert.deepEqual([body["spec"], body["status"]], [{ replicas: 2 }, { replicas: 0, selector: "app=r" }]);
  const entries = listAt(
    ask({ method: "GET", path: `${sets}/r` }).body,
    "metadata",
    "managedFields",
  ) as JsonObject[];
  const own = entries.find(({ subresource }) => subresource === "scale");
  assert.deepEqual(own?.["fieldsV1"], { "f:spec": { "f:replicas": {} } });
});

test("access reviews follow the rules", () => {
  const clock = new FakeClock();
  const rules = [
    { user: "joe", verbs: ["get", "list"], apiGroups: [""], resources: ["pods"], namespaces: ["default"] },
  ];
  const server = createApiServer({ clock, random: createSeededRandom(7) }, { rules });
  const allowed = (verb: string, namespace: string): unknown => {
    const spec = { user: "joe", resourceAttributes: { verb, resource: "pods", namespace } };
    const body = { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec };
    const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    const response = server.handle({ method: "POST", path, body, user: administrator }) as WholeResponse;
    return valueAt(response.body, "status", "allowed");
  };
  assert.deepEqual(
    [allowed("get", "default"), allowed("delete", "default"), allowed("get", "x")],
    [true, false, false],
  );
});
