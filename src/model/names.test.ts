import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isDns1035Label,
  isDns1123Label,
  isLabelValue,
  refusedNamespace,
  refusedWorkloadNamespace,
} from "./names.ts";

const longest = "a".repeat(63);

test("an object's name is a DNS label that starts with a letter", () => {
  for (const good of ["a", "web", "a-b", "a1", longest]) assert.ok(isDns1035Label(good), good);
  for (const bad of ["", "1a", "-a", "a-", "A", "a_b", "a.b", "a/b", "..", "a\n", "ä", `${longest}a`]) {
    assert.ok(!isDns1035Label(bad), JSON.stringify(bad));
  }
});

test("a namespace may start with a digit", () => {
  assert.ok(isDns1123Label("1a"));
  for (const bad of ["", "-a", "a-", "A", "a.b", "a\n", `${longest}a`]) {
    assert.ok(!isDns1123Label(bad), JSON.stringify(bad));
  }
});

test("an id is a label value", () => {
  for (const good of ["", "d_1a2B", "a", "A.b-c_d", "9", longest]) assert.ok(isLabelValue(good), good);
  for (const bad of ["_a", "a_", ".a", "a b", "a/b", "a,b", "a=b", "é", "a\n", `${longest}a`]) {
    assert.ok(!isLabelValue(bad), JSON.stringify(bad));
  }
});

test("namespaces of Kubernetes and krane's own are rejected with the reason", () => {
  for (const system of ["default", "kube-system", "kube-public", "kube-node-lease", "kube-flannel"]) {
    assert.match(refusedNamespace(system, {}) ?? "", /is reserved for Kubernetes/, system);
  }
  const own = { ownNamespace: "platform", stateNamespace: "krane-state" };
  assert.match(refusedNamespace("platform", own) ?? "", /krane itself/);
  assert.match(refusedNamespace("krane-state", own) ?? "", /keeps its own objects/);
  assert.match(refusedWorkloadNamespace("krane-state", own) ?? "", /keeps its own objects/);
  assert.equal(refusedNamespace("platform", {}), undefined);
  assert.equal(refusedNamespace("kubelet", own), undefined);
});

test("tenants' code never runs in the namespace of the sentinels", () => {
  assert.match(refusedWorkloadNamespace("sentinel", {}) ?? "", /sentinels/);
  assert.match(refusedWorkloadNamespace("kube-system", {}) ?? "", /Kubernetes/);
  assert.equal(refusedWorkloadNamespace("acme", { ownNamespace: "platform" }), undefined);
  assert.equal(refusedNamespace("sentinel", {}), undefined, "krane's own objects do belong there");
});
