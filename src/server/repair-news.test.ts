import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../gen/ctrl/v1/cluster_service_pb.ts";
import { repairNews } from "./repair-news.ts";

interface Init {
  readonly number: bigint;
  readonly atMs?: bigint;
  readonly id?: string;
  readonly reason?: string;
}

function report(repairs: readonly Init[], { name = "deployments", instanceId = "ins_1", atMs = 7 } = {}) {
  const facts = {
    atMs: 1n,
    id: "d_web",
    version: 3n,
    kind: "ReplicaSet",
    name: "web",
    reason: "spec.replicas: 5 -> 2",
  };
  const controllers = [{ name, repairs: repairs.map((repair) => ({ ...facts, ...repair })) }];
  return { report: create(ReportAgentStateRequestSchema, { state: { instanceId, controllers } }), atMs };
}

const news = (before: ReturnType<typeof report> | undefined, after: ReturnType<typeof report>) =>
  repairNews(before, after).map(
    ({ by, event, kind, id, version, outcome }) => `${by} ${event} ${kind} ${id} v${version} ${outcome}`,
  );

test("a repair is told once, with what was changed and by whom", () => {
  const first = report([{ number: 1n }]);
  const line = "agent repaired deployment d_web v3 ReplicaSet web: spec.replicas: 5 -> 2";
  assert.deepEqual(news(undefined, first), [line]);
  assert.deepEqual(news(first, first), []);
  const second = report([{ number: 1n }, { number: 2n, reason: "metadata.labels.a: b -> missing" }]);
  assert.equal(news(first, second).length, 1);
  assert.match(news(first, second)[0] ?? "", /labels/);
});

test("of another process, only what it repaired since the last report is told", () => {
  const before = report([{ number: 9n }], { atMs: 50 });
  const after = (atMs: bigint) => report([{ number: 1n, atMs }], { instanceId: "ins_2", atMs: 90 });
  assert.equal(news(before, after(60n)).length, 1);
  assert.deepEqual(news(before, after(40n)), []);
});

test("the same repair many times in one report is one entry", () => {
  const many = [1n, 2n, 3n].map((number) => ({
    number,
    reason: `spec.replicas: 5 -> 2, at 10:00:0${number}Z`,
  }));
  assert.match(news(undefined, report(many)).join(), /10:00:03Z \(3 times\)$/);
});

test("what cannot be told of an object is left out, and long reasons are cut", () => {
  assert.deepEqual(news(undefined, report([{ number: 1n, id: "" }])), []);
  assert.deepEqual(news(undefined, report([{ number: 1n }], { name: "others" })), []);
  const [entry] = repairNews(undefined, report([{ number: 1n, reason: "x".repeat(900) }]));
  assert.equal(entry?.outcome.length, 303);
});
