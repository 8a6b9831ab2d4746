import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiServer } from "@krane/kube-apiserver";
import { checkContentOf, checkEditsOf, goldenManifests } from "../../test/support/applied-content-trial.ts";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { ciliumDefinition } from "../dev/cilium-definition.ts";
import { createInProcessTransport } from "../dev/in-process-transport.ts";
import { createKubeApi } from "../kube/client.ts";
import { customResourceDefinitions, namespaces, replicaSets } from "../kube/resources.ts";
import { appliedContentHash, manifestContentHash } from "./applied-content.ts";
import { ownerOfField } from "./field-owners.ts";

const never = new AbortController().signal;

async function embedded() {
  const clock = new FakeClock();
  const server = createApiServer({ clock, random: createSeededRandom(1) });
  const transport = createInProcessTransport(server, { userAgent: "kubectl" });
  const api = createKubeApi(transport);
  await api.create(customResourceDefinitions, ciliumDefinition, {}, never);
  await api.create(namespaces, { metadata: { name: "golden" } }, {}, never);
  await clock.advance(1_000);
  return { transport, api };
}

test("every golden manifest has the same hash as sent and as stored by the server", async () => {
  const { transport } = await embedded();
  for (const golden of goldenManifests("golden")) await checkContentOf(transport, golden, never);
});

test("a manual edit of any field that krane sends is detected, and one apply repairs it", async () => {
  const { transport } = await embedded();
  for (const golden of goldenManifests("golden").filter(({ name }) => / of everything$/.test(name))) {
    const accepted = await checkEditsOf(transport, golden, never);
    assert.ok(accepted >= 10, `${golden.name}: only ${accepted} edits were accepted`);
  }
});

test("fields that krane does not send do not matter", async () => {
  const { transport, api } = await embedded();
  const [golden] = goldenManifests("golden").filter(({ name }) => name === "ReplicaSet of minimal");
  assert.ok(golden);
  await checkContentOf(transport, golden, never);
  const { name = "", namespace = "" } = golden.manifest.metadata ?? {};
  const { object } = await api.apply(
    replicaSets,
    { metadata: { name, namespace, labels: { extra: "label" }, annotations: { extra: "annotation" } } },
    { fieldManager: "someone", force: false },
    never,
  );
  assert.equal(object.metadata?.labels?.["extra"], "label");
  assert.equal(appliedContentHash(object), manifestContentHash(golden.manifest));
  assert.equal(ownerOfField(object, ["metadata", "labels", "extra"])?.manager, "someone");
});

test("an object that krane never applied has an empty content hash", () => {
  assert.equal(
    appliedContentHash({ metadata: { managedFields: [{ manager: "krane", operation: "Update" }] } }),
    "",
  );
});
