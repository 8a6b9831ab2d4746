import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { changeLines } from "./change-lines.ts";
import type { DevObject, DevState } from "./dev-state.ts";

const web: DevObject = {
  kind: "deployment",
  key: "krane-dev/web-1",
  id: "d_web-1",
  environment: "env_production",
  image: "nginx:1",
  want: "run",
  desiredVersion: 1n,
  appliedVersion: 1n,
  pods: { ready: 1, total: 2 },
  failing: 0,
  outcome: "applied",
  reason: "",
};

function state(objects: readonly DevObject[], stream = "open"): DevState {
  return { stream, objects };
}

describe("the lines about a change", () => {
  test("are all there is at the first look", () => {
    const sentinel: DevObject = { ...web, kind: "sentinel", key: "sentinel/gateway" };
    const { pods: _, ...policy }: DevObject = { ...web, kind: "policy", appliedVersion: 0n };
    assert.deepEqual(changeLines(undefined, state([web, sentinel, policy])), [
      "streams: open",
      "deployment krane-dev/web-1: desired v1, applied v1, ready 1/2, applied",
      "sentinel sentinel/gateway: desired v1, applied v1, ready 1/2, applied",
      "policy krane-dev/web-1: desired v1, applied v0, applied",
    ]);
  });

  test("are empty if nothing changed", () => {
    assert.deepEqual(changeLines(state([web]), state([{ ...web }])), []);
  });

  test("name what changed, what is gone, and the stream", () => {
    const other = { ...web, key: "krane-dev/api-1" };
    const failing = { ...web, failing: 1, outcome: "retrying", reason: "503\nfrom the API server" };
    assert.deepEqual(
      changeLines(state([web, other]), state([failing], "waiting to reconnect (unavailable)")),
      [
        "streams: waiting to reconnect (unavailable)",
        "deployment krane-dev/web-1: desired v1, applied v1, ready 1/2, retrying, 1 failing: 503 from the API server",
        "deployment krane-dev/api-1: gone",
      ],
    );
  });

  test("say once, kind by kind, that everything is ready", () => {
    const ready = { ...web, pods: { ready: 2, total: 2 } };
    const settled = state([ready, { ...ready, key: "krane-dev/api-1" }]);
    assert.equal(changeLines(state([web]), settled).at(-1), "all 2 deployments are ready");
    assert.equal(changeLines(state([web]), state([ready])).at(-1), "the deployment is ready");
    assert.deepEqual(changeLines(settled, settled), []);
    const sentinel: DevObject = { ...web, kind: "sentinel", key: "sentinel/gateway" };
    const { pods: _, ...policy }: DevObject = { ...web, kind: "policy" };
    const others = ["net-1", "net-2"].map((key) => ({ ...policy, key }));
    const waiting = state([ready, sentinel, ...others]);
    assert.equal(changeLines(undefined, waiting).at(-1), "all 2 policies are in place");
    const rested = state([ready, { ...sentinel, pods: { ready: 1, total: 1 } }, ...others]);
    assert.deepEqual(changeLines(waiting, rested).slice(1), ["the sentinel is ready"]);
  });

  test("call nothing ready that fails, is behind, or is to go", () => {
    for (const not of [
      { failing: 1 },
      { desiredVersion: 2n },
      { want: "delete" },
      { reason: "why" },
    ] as const) {
      const lines = changeLines(undefined, state([{ ...web, pods: { ready: 2, total: 2 }, ...not }]));
      assert.equal(lines.length, 2, JSON.stringify(lines));
    }
  });
});
