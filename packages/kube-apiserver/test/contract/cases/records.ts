// Events, nodes, Leases and service accounts: the kinds that are written to be read by others.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { events, lease, leases, nodes, serviceAccounts } from "../fixtures.ts";
import { at, type Manifest } from "../manifest.ts";
import { invalid, refused } from "../refusal.ts";
import type { Trial } from "../trial.ts";

function eventAbout(trial: Trial, name: string, fields: object = {}): Manifest {
  return {
    metadata: { generateName: `${name}.` },
    involvedObject: { apiVersion: "v1", kind: "Secret", name, namespace: trial.namespace },
    type: "Warning",
    reason: "Contract",
    message: "something happened",
    source: { component: "contract" },
    ...fields,
  };
}

export const recordCases = [
  contractCase("events: are kept and found by what they are about", async (trial) => {
    const made = await trial.create(events, eventAbout(trial, "a"));
    await trial.create(events, eventAbout(trial, "b", { type: "Normal" }));
    assert.match(made.metadata?.name ?? "", /^a\..{5}$/);
    const fieldSelector = "involvedObject.name=a,reason=Contract,type=Warning";
    assert.deepEqual(await trial.names(events, { fieldSelector }), [made.metadata?.name]);
  }),
  contractCase("events: about another namespace than their own are refused", async (trial) => {
    const involvedObject = { apiVersion: "v1", kind: "Secret", name: "a", namespace: "other" };
    await refused(trial.create(events, eventAbout(trial, "a", { involvedObject })), {
      status: 422,
      reason: "Invalid",
    });
  }),
  contractCase("events: can be counted up", async (trial) => {
    const made = await trial.create(events, eventAbout(trial, "a", { count: 1 }));
    const name = made.metadata?.name ?? "";
    const patched = await trial.patch(events, name, "merge", { count: 2 });
    assert.equal(at(patched, "count"), 2);
  }),
  contractCase("leases: change hands only on the version that was read", async (trial) => {
    const before = await trial.create(leases, lease("a"));
    const spec = { holderIdentity: "another", leaseDurationSeconds: 15 };
    const after = await trial.update(leases, { ...before, spec });
    assert.equal(at(after, "spec.holderIdentity"), "another");
    await refused(trial.update(leases, { ...before, spec }), { status: 409, reason: "Conflict" });
  }),
  contractCase("leases: times have microseconds", async (trial) => {
    const renewTime = "2026-01-02T03:04:05.678901Z";
    const made = await trial.create(leases, lease("a", { renewTime }));
    assert.equal(at(made, "spec.renewTime"), renewTime);
  }),
  contractCase("nodes: there are ready ones in three zones", async (trial) => {
    const { items } = await trial.list(nodes, { labelSelector: "topology.kubernetes.io/zone" });
    const zones = new Set(items.map((node) => node.metadata?.labels?.["topology.kubernetes.io/zone"]));
    assert.ok(zones.size >= 3);
    for (const node of items) {
      const conditions = (at(node, "status.conditions") ?? []) as readonly { type: string; status: string }[];
      assert.equal(conditions.find((one) => one.type === "Ready")?.status, "True");
    }
  }),
  contractCase("nodes: a taint needs an effect that exists", async (trial) => {
    const taints = [{ key: "a", value: "b", effect: "Sometimes" }];
    const node = { metadata: { name: trial.unique("node") }, spec: { taints } };
    await invalid(trial.create(nodes, node, { dryRun: true }), [
      "FieldValueNotSupported metadata.taints[0].effect",
    ]);
  }),
  contractCase("service accounts: every namespace has one of the name default", async (trial) => {
    const account = await trial.read(serviceAccounts, "default");
    assert.equal(account.metadata?.namespace, trial.namespace);
  }),
  contractCase("service accounts: the pull secrets of one are atomic", async (trial) => {
    const withSecrets = (...names: readonly string[]) => ({
      metadata: { name: "a" },
      imagePullSecrets: names.map((name) => ({ name })),
    });
    await trial.apply(serviceAccounts, withSecrets("one"));
    await refused(trial.apply(serviceAccounts, withSecrets("two"), { fieldManager: "beta" }), {
      status: 409,
      reason: "Conflict",
      causes: ["FieldManagerConflict .imagePullSecrets"],
    });
  }),
];
