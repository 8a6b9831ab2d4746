import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { collectionPath, objectPath } from "./client.ts";
import { KubeApiError } from "./errors.ts";
import { ciliumNetworkPolicies, namespaces, pods, tokenRequests } from "./resources.ts";

test("paths follow the group, the namespace and the subresource", () => {
  assert.equal(collectionPath(pods), "/api/v1/pods");
  assert.equal(collectionPath(pods, "a"), "/api/v1/namespaces/a/pods");
  assert.equal(objectPath(namespaces, { name: "a" }), "/api/v1/namespaces/a");
  assert.equal(
    objectPath(pods, { namespace: "a", name: "b" }, "status"),
    "/api/v1/namespaces/a/pods/b/status",
  );
  assert.equal(
    objectPath(ciliumNetworkPolicies, { namespace: "a", name: "b.c" }),
    "/apis/cilium.io/v2/namespaces/a/ciliumnetworkpolicies/b.c",
  );
  assert.equal(
    objectPath(tokenRequests, { namespace: "a", name: "b" }, "token"),
    "/api/v1/namespaces/a/serviceaccounts/b/token",
  );
});

test("a namespaced object without a namespace, and a cluster-scoped one with one, is an error", () => {
  assert.throws(() => objectPath(pods, { name: "a" }), KubeApiError);
  assert.throws(() => objectPath(namespaces, { name: "a", namespace: "b" }), KubeApiError);
});

test("any name is rejected or stays one segment of the path", () => {
  const anything = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("..", ".", "a/..", "%2f", "a;b", "a\u0000"),
  );
  fc.assert(
    fc.property(anything, anything, anything, (namespace, name, subresource) => {
      let path: string;
      try {
        path = objectPath(pods, { namespace, name }, subresource);
      } catch (error) {
        assert.ok(error instanceof KubeApiError && error.code === "invalid-name");
        return;
      }
      const wanted = `/api/v1/namespaces/${namespace}/pods/${name}/${subresource}`;
      assert.equal(new URL(path, "http://server").pathname, wanted);
    }),
  );
});

test("a very long name is cut in the message", () => {
  assert.throws(
    () => collectionPath(pods, "x".repeat(10_000)),
    (error: Error) => error.message.length < 200,
  );
});
