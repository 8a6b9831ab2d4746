import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { AgentViewSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { needsOf } from "./attention.ts";

const nowMs = 1_000_000;
const heard = { heartbeatAtMs: BigInt(nowMs) };
const agent = (region: string, init: object) => create(AgentViewSchema, { region, ...init });

test("nothing is needed where no agent is silent and nothing is in trouble", () => {
  assert.deepEqual(needsOf([agent("a", heard)], nowMs), []);
});

test("the most urgent comes first, whatever its region", () => {
  const controllers = [{ name: "deployments", failing: 2, parked: 1 }];
  const needs = needsOf(
    [
      agent("a", { ...heard, state: { controllers, warnings: ["No sandbox."] } }),
      agent("b", { ...heard, blockedDeletions: [{ key: "x" }] }),
      agent("c", {}),
      agent("d", { heartbeatAtMs: BigInt(nowMs - 60_000) }),
    ],
    nowMs,
  );
  assert.deepEqual(
    needs.map(({ region, text, about }) => `${region} ${about}: ${text}`),
    [
      "d region: The agent is silent: last heard 1m ago.",
      "c region: No agent has ever connected.",
      "b held: 1 deletion is held back.",
      "a troubled: 2 objects have pods that cannot run.",
      "a troubled: 1 object was rejected.",
      "a region: No sandbox.",
    ],
  );
});

test("what a silent agent reported is not told as the present", () => {
  const silent = agent("a", { heartbeatAtMs: 1n, state: { controllers: [{ failing: 2 }] } });
  assert.equal(needsOf([silent], nowMs).length, 1);
});
