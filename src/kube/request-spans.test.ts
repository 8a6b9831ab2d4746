import assert from "node:assert/strict";
import { test } from "node:test";
import { createRecordedSpans } from "../../test/support/recorded-spans.ts";
import { collectionPath, objectPath } from "./client.ts";
import { KubeApiError } from "./errors.ts";
import { requestTarget, tracedTransport } from "./request-spans.ts";
import { ciliumNetworkPolicies, namespaces, pods, replicaSets } from "./resources.ts";
import type { KubeResponse, KubeTransport } from "./transport.ts";

const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web" };

function transportThat(send: () => Promise<KubeResponse>): KubeTransport {
  return { send, stream: () => assert.fail("no watch is opened"), close: async () => undefined };
}

test("the target is parsed from every path that krane builds", () => {
  const shown = (method: "GET" | "POST" | "PATCH" | "DELETE", path: string) => {
    const { verb, resource, namespace, name } = requestTarget({ method, path });
    return [verb, resource, namespace, name];
  };
  assert.deepEqual(shown("GET", objectPath(replicaSets, ref)), ["get", "replicasets", "acme", "web"]);
  assert.deepEqual(shown("PATCH", objectPath(pods, ref, "status")), ["patch", "pods", "acme", "web"]);
  assert.deepEqual(shown("GET", collectionPath(pods)), ["list", "pods", undefined, undefined]);
  assert.deepEqual(shown("POST", collectionPath(pods, "acme")), ["create", "pods", "acme", undefined]);
  const { plural } = ciliumNetworkPolicies;
  assert.deepEqual(shown("DELETE", objectPath(ciliumNetworkPolicies, ref)), [
    "delete",
    plural,
    "acme",
    "web",
  ]);
  assert.deepEqual(shown("GET", objectPath(namespaces, { name: "acme" })), [
    "get",
    "namespaces",
    undefined,
    "acme",
  ]);
  assert.deepEqual(shown("GET", collectionPath(namespaces)), ["list", "namespaces", undefined, undefined]);
});

test("a span has the target and the status, and fails for an error status other than 404", async () => {
  const { spans, seen } = createRecordedSpans();
  for (const status of [200, 404, 409]) {
    const traced = tracedTransport(
      transportThat(async () => ({ status, body: "a secret" })),
      spans,
    );
    const request = { method: "GET", path: objectPath(pods, ref), body: "a secret" } as const;
    assert.equal((await traced.send(request, never)).status, status);
  }
  assert.deepEqual(
    seen.map(({ attributes, failure }) => [attributes["http.response.status_code"], failure]),
    [
      [200, undefined],
      [404, undefined],
      [409, "409"],
    ],
  );
  assert.equal(seen[0]?.name, "kubernetes get pods");
  assert.ok(!JSON.stringify(seen).includes("secret"));
});

test("a request without a response has a span without a status, and its error is passed on", async () => {
  const { spans, seen } = createRecordedSpans();
  const broken = new KubeApiError("network", "reset");
  const traced = tracedTransport(
    transportThat(() => Promise.reject(broken)),
    spans,
  );
  const sent = traced.send({ method: "GET", path: collectionPath(pods) }, never);
  await assert.rejects(sent, (error) => error === broken);
  assert.equal(seen.length, 1);
  assert.ok(!("http.response.status_code" in (seen[0]?.attributes ?? {})));
});

test("without tracing, the transport is returned as it is", () => {
  const transport = transportThat(() => assert.fail("nothing is sent"));
  assert.equal(tracedTransport(transport, undefined), transport);
});
