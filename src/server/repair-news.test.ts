import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../gen/ctrl/v1/cluster_service_pb.ts";
import { repairNews } from "./repair-news.ts";

interface Init {
  readonly number: bigint;
  readonly id?: string;
  readonly reason?: string;
}

function report(repairs: readonly Init[], name = "deployments") {
  const facts = {
    id: "d_web",
    version: 3n,
    kind: "ReplicaSet",
    name: "web",
    reason: "spec.replicas: 5 -> 2",
  };
  const controllers = [{ name, repairs: repairs.map((repair) => ({ ...facts, ...repair })) }];
  return { report: create(ReportAgentStateRequestSchema, { state: { controllers } }), atMs: 7 };
}

const news = (before: ReturnType<typeof report> | undefined, after: ReturnType<typeof report>, same = true) =>
  repairNews(before, after, same).map(
    ({ by, event, kind, id, version, outcome }) => `${by} ${event} ${kind} ${id} v${version} ${outcome}`,
  );

test("a repair is told once, with what was changed and by whom", () => {
  const first = report([{ number: 1n }]);
  const line = "agent repaired deployment d_web v3 ReplicaSet web: spec.replicas: 5 -> 2";
  assert.deepEqual(news(undefined, first, false), [line]);
  assert.deepEqual(news(first, first), []);
  const second = report([{ number: 1n }, { number: 2n, reason: "metadata.labels.a: b -> missing" }]);
  assert.equal(news(first, second).length, 1);
  assert.match(news(first, second)[0] ?? "", /labels/);
});

test("the numbers of a new process begin again", () => {
  assert.equal(news(report([{ number: 9n }]), report([{ number: 1n }]), false).length, 1);
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
  assert.deepEqual(news(undefined, report([{ number: 1n }], "others")), []);
  const [entry] = repairNews(undefined, report([{ number: 1n, reason: "x".repeat(900) }]), false);
  assert.equal(entry?.outcome.length, 303);
});
