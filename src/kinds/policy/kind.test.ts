import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { applyPolicy, jsonBytes } from "../../../test/support/policy-messages.ts";
import { readApply, readDelete, readState } from "../../engine/desired-message.ts";
import {
  CiliumNetworkPolicyStateSchema,
  DeleteCiliumNetworkPolicySchema,
} from "../../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { policyKind } from "./kind.ts";

const rules = { registries: [] };

const named = { k8sNamespace: "acme", k8sName: "to-web" };

test("an apply is about the object that it names, and knows its id", () => {
  const { key, id, version, want } = readApply(policyKind, applyPolicy(named), 7n, rules);
  assert.deepEqual([key, id, version, want.kind], ["acme/to-web", "net_1a2B3c4D", 7n, "apply"]);
});

test("a delete is about the object that it names, and knows no id", () => {
  const { key, id, want } = readDelete(policyKind, create(DeleteCiliumNetworkPolicySchema, named), 7n, rules);
  assert.deepEqual([key, id, want], ["acme/to-web", undefined, { kind: "delete" }]);
});

test("an invalid policy keeps its key, so that it replaces the previous one", () => {
  const { key, id, want } = readApply(
    policyKind,
    applyPolicy({ ...named, policy: jsonBytes([]) }),
    7n,
    rules,
  );
  assert.deepEqual([key, id, want.kind], ["acme/to-web", "net_1a2B3c4D", "invalid"]);
});

test("a name that may not be one gets a key that no object has, for deletes too", () => {
  for (const wrong of [{ k8sNamespace: "kube-system" }, { k8sNamespace: "krane" }, { k8sName: "../x" }]) {
    const ownRules = { ...rules, ownNamespace: "krane" };
    const message = { ...named, ...wrong };
    for (const read of [
      readApply(policyKind, applyPolicy(message), 7n, ownRules),
      readDelete(policyKind, create(DeleteCiliumNetworkPolicySchema, message), 7n, ownRules),
    ]) {
      assert.match(read.key, /^invalid:"/);
      assert.equal(read.want.kind, "invalid");
    }
  }
});

test("a state without a policy only moves the cursor", () => {
  const bare = create(CiliumNetworkPolicyStateSchema, { version: 9n });
  assert.deepEqual(readState(policyKind, bare, rules), { kind: "bare", version: 9n, unreadable: false });
});
