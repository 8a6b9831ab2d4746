import assert from "node:assert/strict";
import { test } from "node:test";
import { ScriptedKube } from "../../test/support/scripted-kube.ts";
import type { KubeApi } from "./api.ts";
import { createKubeApi } from "./client.ts";
import { KubeApiError } from "./errors.ts";
import { listAll } from "./list-all.ts";
import { ciliumNetworkPolicies, evictions, pods, replicaSets, secrets, tokenReviews } from "./resources.ts";
import type { KubeRequest, KubeResponse, KubeTransport } from "./transport.ts";

const signal = new AbortController().signal;
const ref = { namespace: "default", name: "a" };

/** Answers each request with the next of these. */
function answering(...answers: readonly KubeResponse[]): { api: KubeApi; requests: KubeRequest[] } {
  const requests: KubeRequest[] = [];
  const waiting = [...answers];
  const next = (request: KubeRequest): KubeResponse => {
    requests.push(request);
    return waiting.shift() ?? assert.fail("one request too many");
  };
  const transport: KubeTransport = {
    send: async (request) => next(request),
    async stream(request) {
      const answer = next(request);
      async function* values() {
        yield* answer.body as unknown[];
      }
      return { status: answer.status, values: values() };
    },
    close: async () => undefined,
  };
  return { api: createKubeApi(transport), requests };
}

function notFound(details: Readonly<Record<string, unknown>>, message = "not found"): KubeResponse {
  return {
    status: 404,
    body: { kind: "Status", apiVersion: "v1", code: 404, reason: "NotFound", message, details },
  };
}

async function errorOf(promise: Promise<unknown>): Promise<KubeApiError> {
  const error = await promise.then(
    () => assert.fail("it did not fail"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof KubeApiError);
  return error;
}

async function collect(api: KubeApi, options = {}) {
  const events = [];
  for await (const event of api.watch(pods, options, signal)) events.push(event);
  return events;
}

test("an object is absent only if a NotFound names it", async () => {
  const absent = notFound({ name: "a", kind: "pods" });
  assert.equal(await answering(absent).api.get(pods, ref, {}, signal), undefined);
  assert.deepEqual(await answering(absent).api.delete(pods, ref, {}, signal), { kind: "absent" });

  const others = [
    notFound({}, "the server could not find the requested resource"),
    notFound({ name: "default", kind: "namespaces" }),
    { status: 404, body: "404 page not found" },
  ];
  for (const other of others) {
    assert.equal((await errorOf(answering(other).api.get(pods, ref, {}, signal))).status, 404);
    assert.equal((await errorOf(answering(other).api.delete(pods, ref, {}, signal))).status, 404);
  }
});

test("an error names the operation, the object and the server's reason", async () => {
  const conflict = {
    status: 409,
    retryAfterSeconds: 3,
    body: {
      kind: "Status",
      code: 409,
      reason: "Conflict",
      message: 'conflict with "kubectl"',
      details: { causes: [{ reason: "FieldManagerConflict", field: ".spec.replicas" }] },
    },
  };
  const applied = answering(conflict).api.apply(
    replicaSets,
    { metadata: ref },
    { fieldManager: "krane", force: false },
    signal,
  );
  const error = await errorOf(applied);
  assert.equal(error.message, 'apply replicasets default/a: 409 Conflict: conflict with "kubectl"');
  assert.deepEqual(
    [error.code, error.status, error.reason, error.retryAfterMs],
    ["refused", 409, "Conflict", 3_000],
  );
  assert.equal(error.causes[0]?.field, ".spec.replicas");
});

test("the retry hint can also be in the status, and a long message is cut", async () => {
  const body = { kind: "Status", code: 429, message: "x".repeat(5_000), details: { retryAfterSeconds: 2 } };
  const error = await errorOf(answering({ status: 429, body }).api.list(pods, {}, signal));
  assert.equal(error.retryAfterMs, 2_000);
  assert.ok(error.message.length < 1_200);
});

test("an apply is a patch of the name in the manifest, with the kind filled in; 201 means created", async () => {
  const { api, requests } = answering({ status: 201, body: {} }, { status: 200, body: {} });
  const options = { fieldManager: "krane", force: true, fieldValidation: "Strict", dryRun: true } as const;
  const created = await api.apply(ciliumNetworkPolicies, { metadata: ref, spec: {} }, options, signal);
  const applied = await api.apply(ciliumNetworkPolicies, { metadata: ref }, options, signal);
  assert.deepEqual([created.kind, applied.kind], ["created", "applied"]);
  assert.deepEqual(requests[0], {
    method: "PATCH",
    path: "/apis/cilium.io/v2/namespaces/default/ciliumnetworkpolicies/a",
    query: { fieldManager: "krane", dryRun: "All", fieldValidation: "Strict", force: "true" },
    contentType: "application/apply-patch+yaml",
    accept: "application/json",
    body: { apiVersion: "cilium.io/v2", kind: "CiliumNetworkPolicy", metadata: ref, spec: {} },
  });
});

test("a delete carries its preconditions, and distinguishes deleted from deleting", async () => {
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  const cases: [unknown, string][] = [
    [{ kind: "Status", status: "Success" }, "deleted"],
    [{ kind: "Service", metadata: { name: "a" } }, "deleted"],
    [{ kind: "Pod", metadata: { deletionTimestamp, deletionGracePeriodSeconds: 0 } }, "deleted"],
    [{ kind: "Pod", metadata: { deletionTimestamp, deletionGracePeriodSeconds: 30 } }, "deleting"],
    [
      { kind: "Pod", metadata: { deletionTimestamp, deletionGracePeriodSeconds: 0, finalizers: ["x"] } },
      "deleting",
    ],
    [{ kind: "Namespace", metadata: { deletionTimestamp } }, "deleting"],
  ];
  for (const [body, kind] of cases) {
    const { api, requests } = answering({ status: 200, body });
    const options = { uid: "u", propagation: "Background", gracePeriodSeconds: 0 } as const;
    assert.deepEqual(await api.delete(pods, ref, options, signal), { kind });
    assert.deepEqual(requests[0]?.body, {
      apiVersion: "v1",
      kind: "DeleteOptions",
      preconditions: { uid: "u" },
      propagationPolicy: "Background",
      gracePeriodSeconds: 0,
    });
  }
});

test("reviews are created at their collection, evictions at their pod", async () => {
  const { api, requests } = answering({ status: 201, body: {} }, { status: 201, body: {} });
  await api.create(tokenReviews, { spec: { token: "t" } }, {}, signal);
  await api.create(evictions, { metadata: ref }, { subresource: "eviction", ref }, signal);
  assert.deepEqual(
    requests.map((request) => [request.method, request.path]),
    [
      ["POST", "/apis/authentication.k8s.io/v1/tokenreviews"],
      ["POST", "/api/v1/namespaces/default/pods/a/eviction"],
    ],
  );
});

test("a metadata request asks for metadata only", async () => {
  const list = { status: 200, body: { metadata: { resourceVersion: "1" }, items: null } };
  const { api, requests } = answering({ status: 200, body: {} }, list, { status: 200, body: [] });
  await api.get(pods, ref, { detail: "metadata" }, signal);
  assert.deepEqual(await api.list(pods, { detail: "metadata" }, signal), { items: [], resourceVersion: "1" });
  for await (const _ of api.watch(pods, { detail: "metadata" }, signal)) assert.fail();
  assert.deepEqual(
    requests.map((request) => /as=(\w+)/.exec(request.accept ?? "")?.[1]),
    ["PartialObjectMetadata", "PartialObjectMetadataList", "PartialObjectMetadata"],
  );
});

test("a response that is not an object, or a list without items or version, is malformed", async () => {
  for (const body of ["text", [], null, 7]) {
    assert.equal(
      (await errorOf(answering({ status: 200, body }).api.get(pods, ref, {}, signal))).code,
      "malformed",
    );
  }
  for (const body of [
    { items: [] },
    { metadata: { resourceVersion: "1" } },
    { metadata: { resourceVersion: "1" }, items: [1] },
  ]) {
    assert.equal(
      (await errorOf(answering({ status: 200, body }).api.list(pods, {}, signal))).code,
      "malformed",
    );
  }
});

test("watch events are parsed by type; bookmarks carry their version and the end of the initial state", async () => {
  const object = { metadata: { name: "a", resourceVersion: "2" } };
  const end = { "k8s.io/initial-events-end": "true" };
  const { api, requests } = answering({
    status: 200,
    body: [
      { type: "ADDED", object },
      { type: "BOOKMARK", object: { metadata: { resourceVersion: "3", annotations: end } } },
      { type: "BOOKMARK", object: { metadata: { resourceVersion: "4" } } },
    ],
  });
  assert.deepEqual(
    await collect(api, { sendInitialEvents: true, timeoutSeconds: 300, labelSelector: "a=b" }),
    [
      { type: "ADDED", object },
      { type: "BOOKMARK", resourceVersion: "3", initialEventsEnd: true },
      { type: "BOOKMARK", resourceVersion: "4", initialEventsEnd: false },
    ],
  );
  assert.deepEqual(requests[0]?.query, {
    watch: "true",
    labelSelector: "a=b",
    timeoutSeconds: "300",
    allowWatchBookmarks: "true",
    sendInitialEvents: "true",
    resourceVersionMatch: "NotOlderThan",
  });
});

test("onOpen is called before the first event, and not for a refused watch", async () => {
  const seen: string[] = [];
  const onOpen = () => seen.push("open");
  const object = { metadata: { name: "a", resourceVersion: "2" } };
  const taken = answering({ status: 200, body: [{ type: "ADDED", object }] });
  for await (const { type } of taken.api.watch(pods, { onOpen }, signal)) seen.push(type);
  assert.deepEqual(seen, ["open", "ADDED"]);
  assert.deepEqual(taken.requests[0]?.query, { watch: "true" });

  const server = new ScriptedKube();
  server.streamFaults.push({ kind: "status", status: 403 });
  await errorOf(collect(createKubeApi(server), { onOpen }));
  assert.deepEqual(seen, ["open", "ADDED"]);
});

test("an ERROR event throws its error; an unknown event is an error and never skipped", async () => {
  const expired = {
    type: "ERROR",
    object: { kind: "Status", code: 410, reason: "Expired", message: "too old" },
  };
  const error = await errorOf(collect(answering({ status: 200, body: [expired] }).api));
  assert.equal(error.isExpired, true);
  assert.equal(error.message, "watch pods: 410 Expired: too old");
  const versioned = { metadata: { resourceVersion: "1" } };
  for (const value of [
    null,
    7,
    {},
    { type: "ADDED" },
    { type: "ADDED", object: { metadata: {} } },
    { type: "X", object: versioned },
  ]) {
    const failure = await errorOf(collect(answering({ status: 200, body: [value] }).api));
    assert.equal(failure.code, "malformed");
  }
});

const page = (items: readonly string[], token?: string): KubeResponse => ({
  status: 200,
  body: {
    metadata: { resourceVersion: "9", ...(token && { continue: token }) },
    items: items.map((name) => ({ metadata: { name } })),
  },
});
const gone: KubeResponse = { status: 410, body: { kind: "Status", code: 410, reason: "Expired" } };
const nameOf = (object: { metadata?: { name?: string } }) => object.metadata?.name;

test("all pages make one list; an expired token restarts it once, and a partial list is never returned", async () => {
  const whole = answering(page(["a"], "t1"), page(["b"], "t2"), page(["c"]));
  assert.deepEqual(await listAll(whole.api, pods, {}, nameOf, signal), {
    items: ["a", "b", "c"],
    resourceVersion: "9",
  });
  assert.deepEqual(
    whole.requests.map((request) => request.query),
    [{ limit: "100" }, { limit: "100", continue: "t1" }, { limit: "100", continue: "t2" }],
  );
  const restarted = answering(page(["a"], "t1"), gone, page(["b"]));
  assert.deepEqual((await listAll(restarted.api, pods, {}, nameOf, signal)).items, ["b"]);
  const hopeless = answering(page(["a"], "t1"), gone, page(["a"], "t1"), gone);
  assert.equal((await errorOf(listAll(hopeless.api, pods, {}, nameOf, signal))).isExpired, true);
});

test("a page that is too large is read in smaller ones, and a single object that is fails", async () => {
  const limits: number[] = [];
  const names = Array.from({ length: 7 }, (_, index) => `pod-${index}`);
  const list = async (mostPods: number) => {
    limits.length = 0;
    const transport: KubeTransport = {
      async send({ query }) {
        const limit = Number(query?.["limit"]);
        limits.push(limit);
        if (limit > mostPods) throw new KubeApiError("too-large", "list pods: more than 64 MiB");
        const begin = Number(query?.["continue"] ?? 0);
        const end = begin + limit;
        return page(names.slice(begin, end), end < names.length ? String(end) : undefined);
      },
      stream: () => assert.fail("it is no watch"),
      close: async () => undefined,
    };
    return (await listAll(createKubeApi(transport), pods, {}, nameOf, signal)).items;
  };
  assert.deepEqual(await list(5), names);
  assert.deepEqual(limits, [100, 25, 7, 2, 2, 2, 2]);
  assert.equal((await errorOf(list(0))).code, "too-large");
});

test("the server's message about a refused secret is left out, except for field manager conflicts", async () => {
  const causes = [
    { reason: "FieldValueInvalid", field: "data", message: "hunter2 is too short" },
    { reason: "FieldManagerConflict", field: ".type", message: 'conflict with "kubectl"' },
  ];
  const refusal = {
    status: 422,
    retryAfterSeconds: 2,
    body: {
      kind: "Status",
      apiVersion: "v1",
      reason: "Invalid",
      message: "hunter2 is refused",
      details: { causes },
    },
  };
  const text = { status: 500, body: "a proxy that quotes hunter2" };
  const { api } = answering(refusal, text, refusal, refusal);
  const applied = await errorOf(
    api.apply(secrets, { metadata: ref }, { fieldManager: "krane", force: false }, signal),
  );
  const { status, reason, retryAfterMs } = applied;
  assert.deepEqual([status, reason, retryAfterMs], [422, "Invalid", 2_000]);
  assert.deepEqual(applied.causes, [{ reason: "FieldValueInvalid", field: "data" }, causes[1]]);
  const others = [
    await errorOf(api.create(secrets, { metadata: ref }, {}, signal)),
    await errorOf(api.create(tokenReviews, { spec: {} }, {}, signal)),
  ];
  for (const error of [applied, ...others])
    assert.doesNotMatch(JSON.stringify([error, error.message]), /hunter2/);
  const plain = await errorOf(api.create(pods, { metadata: ref }, {}, signal));
  assert.match(plain.message, /hunter2/);
});
