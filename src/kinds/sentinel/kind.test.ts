import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { applySentinel } from "../../../test/support/sentinel-messages.ts";
import { readState } from "../../engine/desired-message.ts";
import { SentinelStateSchema } from "../../gen/ctrl/v1/sentinel_pb.ts";
import { sentinelKind } from "./kind.ts";

const rules = { registries: [] };

function read(init: Parameters<typeof create<typeof SentinelStateSchema>>[1]) {
  return readState(sentinelKind, create(SentinelStateSchema, init), rules);
}

test("an apply names its object in the namespace of the sentinels, its id and its version", () => {
  const state = read({ version: 7n, state: { case: "apply", value: applySentinel({ replicas: 2 }) } });
  assert.ok(state.kind === "message" && state.message.want.kind === "apply");
  const { key, id, version, want } = state.message;
  assert.deepEqual([key, id, version, want.spec.replicas], ["sentinel/gate", "se_1a2B3c4D", 7n, 2]);
});

test("a delete names the same object, and no id", () => {
  const state = read({ version: 8n, state: { case: "delete", value: { k8sName: "gate" } } });
  assert.deepEqual(state, {
    kind: "message",
    message: { key: "sentinel/gate", id: undefined, version: 8n, want: { kind: "delete" } },
  });
});

test("what is wrong with a sentinel takes the place of what was wanted of it", () => {
  const state = read({ version: 9n, state: { case: "apply", value: applySentinel({ memoryMib: 0n }) } });
  assert.ok(state.kind === "message" && state.message.want.kind === "invalid");
  assert.equal(state.message.key, "sentinel/gate");
  assert.deepEqual(
    state.message.want.problems.map(({ path }) => path),
    ["memory_mib"],
  );
});

test("a name that may not be one is no key of an object, in an apply or in a delete", () => {
  for (const k8sName of ["", "Gate", "gate-gossip-lan", "../gate", "g".repeat(53)]) {
    const states = [
      read({ version: 1n, state: { case: "apply", value: applySentinel({ k8sName }) } }),
      read({ version: 1n, state: { case: "delete", value: { k8sName } } }),
    ];
    for (const state of states) {
      assert.ok(state.kind === "message" && state.message.want.kind === "invalid");
      assert.match(state.message.key, /^invalid:/);
    }
  }
});

test("a state that says nothing is only a version", () => {
  assert.deepEqual(read({ version: 5n }), { kind: "bare", version: 5n, unreadable: false });
});
