// Label and field selectors of lists; watches have the same ones.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import {
  boundPod,
  namespaces,
  pendingPod,
  pods,
  replicaSets,
  secret,
  secrets,
  unscheduled,
} from "../fixtures.ts";
import { refused } from "../refusal.ts";
import type { Trial } from "../trial.ts";

/** a: tier=web,new; b: tier=db; c: no labels. */
async function createThree(trial: Trial): Promise<void> {
  await trial.create(secrets, secret("a", {}, { labels: { tier: "web", new: "" } }));
  await trial.create(secrets, secret("b", {}, { labels: { tier: "db" } }));
  await trial.create(secrets, secret("c"));
}

const matches: Readonly<Record<string, readonly string[]>> = {
  "tier=web": ["a"],
  "tier==web": ["a"],
  "tier!=web": ["b", "c"],
  "tier in (web, db)": ["a", "b"],
  "tier in (db)": ["b"],
  "tier notin (web)": ["b", "c"],
  tier: ["a", "b"],
  "!tier": ["c"],
  "tier,new": ["a"],
  "tier,!new": ["b"],
  "tier=web,tier!=web": [],
  "new=": ["a"],
  "": ["a", "b", "c"],
};

const malformed = [
  "tier=web=db",
  "tier in web",
  "=web",
  "tier in (web",
  "UPPER/lower/more",
  "tier=not a value",
];

export const selectorCases = [
  ...Object.entries(matches).map(([labelSelector, expected]) =>
    contractCase(`labels: "${labelSelector}" matches [${expected.join(", ")}]`, async (trial) => {
      await createThree(trial);
      assert.deepEqual(await trial.names(secrets, { labelSelector }), expected);
    }),
  ),
  contractCase("labels: a selector that cannot be read is a bad request", async (trial) => {
    for (const labelSelector of malformed) {
      await refused(trial.list(secrets, { labelSelector }), { status: 400, reason: "BadRequest" });
    }
  }),
  contractCase("labels: numbers compare with > and <", async (trial) => {
    await trial.create(secrets, secret("a", {}, { labels: { size: "5" } }));
    await trial.create(secrets, secret("b", {}, { labels: { size: "15" } }));
    assert.deepEqual(await trial.names(secrets, { labelSelector: "size>9" }), ["b"]);
    assert.deepEqual(await trial.names(secrets, { labelSelector: "size<9" }), ["a"]);
  }),
  contractCase("fields: metadata.name picks one object", async (trial) => {
    await createThree(trial);
    assert.deepEqual(await trial.names(secrets, { fieldSelector: "metadata.name=b" }), ["b"]);
    assert.deepEqual(await trial.names(secrets, { fieldSelector: "metadata.name!=b" }), ["a", "c"]);
  }),
  contractCase("fields: metadata.namespace picks a namespace", async (trial) => {
    await trial.create(secrets, secret("a"));
    const fieldSelector = `metadata.namespace=${trial.namespace}`;
    const { items } = await trial.api.list(secrets, { fieldSelector }, trial.signal);
    assert.deepEqual(
      items.map((item) => item.metadata?.name),
      ["a"],
    );
  }),
  contractCase("fields: the type of a Secret", async (trial) => {
    await trial.create(secrets, secret("a"));
    await trial.create(secrets, { ...secret("b"), type: "example.com/other" });
    assert.deepEqual(await trial.names(secrets, { fieldSelector: "type=example.com/other" }), ["b"]);
  }),
  contractCase("fields: the node of a pod", async (trial) => {
    await trial.create(pods, pendingPod("a"));
    await trial.create(pods, boundPod("b"));
    trial.after(() => trial.delete(pods, "b", { gracePeriodSeconds: 0 }));
    assert.deepEqual(await trial.names(pods, { fieldSelector: "spec.nodeName=" }), ["a"]);
    assert.deepEqual(await trial.names(pods, { fieldSelector: "spec.nodeName=no-such-node" }), ["b"]);
  }),
  contractCase("fields: the phase and the scheduler of a pod", async (trial) => {
    await trial.create(pods, pendingPod("a"));
    await trial.create(pods, pendingPod("b"));
    await trial.patch(pods, "b", "merge", { status: { phase: "Failed" } }, { subresource: "status" });
    assert.deepEqual(await trial.names(pods, { fieldSelector: "status.phase=Failed" }), ["b"]);
    const fieldSelector = `spec.schedulerName=${unscheduled},status.phase!=Failed`;
    assert.deepEqual(await trial.names(pods, { fieldSelector }), ["a"]);
  }),
  contractCase("fields: the phase of a namespace", async (trial) => {
    const fieldSelector = `metadata.name=${trial.namespace},status.phase=Active`;
    assert.deepEqual(await trial.names(namespaces, { fieldSelector }), [trial.namespace]);
  }),
  contractCase("fields: label and field selectors both apply", async (trial) => {
    await createThree(trial);
    const options = { labelSelector: "tier", fieldSelector: "metadata.name!=a" };
    assert.deepEqual(await trial.names(secrets, options), ["b"]);
  }),
  contractCase("fields: a field that a kind cannot be selected by is a bad request", async (trial) => {
    await refused(trial.list(secrets, { fieldSelector: "data.key=value" }), {
      status: 400,
      reason: "BadRequest",
      message: /field label not supported: data\.key|"data\.key" is not a known field selector/,
    });
    await refused(trial.list(replicaSets, { fieldSelector: "spec.replicas=1" }), {
      status: 400,
      reason: "BadRequest",
    });
  }),
  contractCase("fields: a selector that cannot be read is a bad request", async (trial) => {
    await refused(trial.list(secrets, { fieldSelector: "metadata.name" }), {
      status: 400,
      reason: "BadRequest",
    });
  }),
];
