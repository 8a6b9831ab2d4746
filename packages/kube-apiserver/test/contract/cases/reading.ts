// Get and list: what an answer contains, and how the server says that there is nothing.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { namespaces, replicaSet, replicaSets, secret, secrets } from "../fixtures.ts";
import { at } from "../manifest.ts";

export const readingCases = [
  contractCase("get: an absent object is answered with 404 and its name, kind and reason", async (trial) => {
    const answer = await trial.send({ method: "GET", path: trial.path(secrets, "none") });
    assert.equal(answer.status, 404);
    assert.deepEqual(answer.body, {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: 'secrets "none" not found',
      reason: "NotFound",
      details: { name: "none", kind: "secrets" },
      code: 404,
    });
  }),
  contractCase("get: the 404 of a kind in a group names the group", async (trial) => {
    const { body } = await trial.send({ method: "GET", path: trial.path(replicaSets, "none") });
    assert.equal(at(body, "message"), 'replicasets.apps "none" not found');
    assert.deepEqual(at(body, "details"), { name: "none", group: "apps", kind: "replicasets" });
  }),
  contractCase("get: in a namespace that does not exist, the object is what is missing", async (trial) => {
    const path = `/api/v1/namespaces/${trial.unique("none")}/secrets/a`;
    const { status, body } = await trial.send({ method: "GET", path });
    assert.equal(status, 404);
    assert.deepEqual(at(body, "details"), { name: "a", kind: "secrets" });
  }),
  contractCase("get: an object has type, uid, version and creation time", async (trial) => {
    await trial.create(secrets, secret("a", { key: "value" }));
    const found = await trial.read(secrets, "a");
    assert.equal(`${found.apiVersion} ${found.kind}`, "v1 Secret");
    assert.match(found.metadata?.uid ?? "", /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.match(found.metadata?.resourceVersion ?? "", /^[1-9][0-9]*$/);
    assert.match(found.metadata?.creationTimestamp ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.equal(found.metadata?.namespace, trial.namespace);
  }),
  contractCase("get: reading twice gives the same object", async (trial) => {
    await trial.create(secrets, secret("a"));
    assert.deepEqual(await trial.read(secrets, "a"), await trial.read(secrets, "a"));
  }),
  contractCase("get: resourceVersion 0 answers from what the server has at hand", async (trial) => {
    await trial.create(secrets, secret("a", { key: "value" }));
    // A server may be behind here; this one had to have seen the namespace at least.
    const found = await trial.read(namespaces, trial.namespace, { resourceVersion: "0" });
    assert.equal(found.metadata?.name, trial.namespace);
  }),
  contractCase("get: as metadata, an object has neither spec nor data", async (trial) => {
    const whole = await trial.create(secrets, secret("a", { key: "value" }, { labels: { one: "1" } }));
    const partial = await trial.read(secrets, "a", { detail: "metadata" });
    assert.equal(`${partial.apiVersion} ${partial.kind}`, "meta.k8s.io/v1 PartialObjectMetadata");
    assert.deepEqual(Object.keys(partial).sort(), ["apiVersion", "kind", "metadata"]);
    assert.deepEqual(partial.metadata, whole.metadata);
  }),
  contractCase(
    "get: a resource that its group does not have is answered with a bare NotFound",
    async (trial) => {
      const path = `/api/v1/namespaces/${trial.namespace}/nonsense/a`;
      const { status, body } = await trial.send({ method: "GET", path });
      assert.equal(status, 404);
      assert.equal(at(body, "reason"), "NotFound");
      assert.equal(at(body, "message"), "the server could not find the requested resource");
      assert.deepEqual(at(body, "details"), {});
    },
  ),
  contractCase("get: a group that is not installed is answered with a page, not a Status", async (trial) => {
    const path = `/apis/nonsense.example/v1/namespaces/${trial.namespace}/things/a`;
    const { status, body } = await trial.send({ method: "GET", path });
    assert.equal(status, 404);
    assert.equal(String(body).trim(), "404 page not found");
  }),
  contractCase(
    "get: a version that a group does not have is answered with a bare NotFound",
    async (trial) => {
      const path = `/apis/apps/v9/namespaces/${trial.namespace}/replicasets/a`;
      const { status, body } = await trial.send({ method: "GET", path });
      assert.equal(status, 404);
      assert.equal(at(body, "message"), "the server could not find the requested resource");
    },
  ),
  contractCase("get: a media type that the server cannot write is refused with 406", async (trial) => {
    const answer = await trial.send({ method: "GET", path: trial.path(secrets, "a"), accept: "text/csv" });
    assert.equal(answer.status, 406);
    assert.equal(at(answer.body, "reason"), "NotAcceptable");
  }),
  contractCase("a verb that a path does not have is refused with 405", async (trial) => {
    const path = trial.path(secrets, "a");
    const answer = await trial.send({ method: "POST", path, contentType: "application/json", body: {} });
    assert.equal(answer.status, 405);
    assert.equal(at(answer.body, "reason"), "MethodNotAllowed");
    assert.equal(
      at(answer.body, "message"),
      "the server does not allow this method on the requested resource",
    );
  }),
  contractCase("list: an empty namespace gives an empty list with a version", async (trial) => {
    const { status, body } = await trial.send({ method: "GET", path: trial.path(secrets) });
    assert.equal(status, 200);
    assert.equal(`${at(body, "apiVersion")} ${at(body, "kind")}`, "v1 SecretList");
    assert.deepEqual(at(body, "items"), []);
    assert.match(String(at(body, "metadata.resourceVersion")), /^[1-9][0-9]*$/);
  }),
  contractCase("list: a namespace that does not exist is empty, not an error", async (trial) => {
    assert.deepEqual((await trial.list(secrets, { namespace: trial.unique("none") })).items, []);
  }),
  contractCase("list: items come in the order of their names, without a type of their own", async (trial) => {
    for (const name of ["b", "c", "a"]) await trial.create(secrets, secret(name));
    const { items } = await trial.list(secrets);
    assert.deepEqual(
      items.map((item) => item.metadata?.name),
      ["a", "b", "c"],
    );
    assert.deepEqual(
      items.map((item) => item.kind),
      [undefined, undefined, undefined],
    );
  }),
  contractCase("list: its version is not older than any of its items", async (trial) => {
    const created = await trial.create(secrets, secret("a"));
    const page = await trial.list(secrets);
    assert.ok(BigInt(page.resourceVersion) >= BigInt(created.metadata?.resourceVersion ?? 0));
  }),
  contractCase("list: without a namespace, the objects of all namespaces", async (trial) => {
    const label = trial.unique("everywhere");
    const other = trial.unique("contract");
    await trial.create(namespaces, { metadata: { name: other } });
    trial.after(() => trial.delete(namespaces, other));
    await trial.create(secrets, secret("a", {}, { labels: { case: label } }));
    await trial.create(secrets, secret("a", {}, { namespace: other, labels: { case: label } }));
    const page = await trial.api.list(secrets, { labelSelector: `case=${label}` }, trial.signal);
    const found = page.items.map((item) => item.metadata?.namespace).sort();
    assert.deepEqual(found, [trial.namespace, other].sort());
  }),
  contractCase("list: as metadata, items are PartialObjectMetadata", async (trial) => {
    await trial.create(secrets, secret("a", { key: "value" }));
    const accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    const { body } = await trial.send({ method: "GET", path: trial.path(secrets), accept });
    assert.equal(`${at(body, "apiVersion")} ${at(body, "kind")}`, "meta.k8s.io/v1 PartialObjectMetadataList");
    assert.equal(at(body, "items.0.metadata.name"), "a");
    assert.equal(at(body, "items.0.data"), undefined);
  }),
  contractCase("versions grow over all kinds together", async (trial) => {
    const first = await trial.create(secrets, secret("a"));
    const second = await trial.create(replicaSets, replicaSet("b"));
    const third = await trial.create(secrets, secret("c"));
    const versions = [first, second, third].map((one) => BigInt(one.metadata?.resourceVersion ?? 0));
    assert.ok((versions[0] ?? 0n) < (versions[1] ?? 0n) && (versions[1] ?? 0n) < (versions[2] ?? 0n));
  }),
];
