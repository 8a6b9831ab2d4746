import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../gen/ctrl/v1/cluster_service_pb.ts";
import { type ObjectStatusSchema, ObjectStatus_Outcome as Outcome } from "../gen/krane/v1/agent_pb.ts";
import { troubleNews } from "./trouble-news.ts";

type StatusInit = Exclude<MessageInitShape<typeof ObjectStatusSchema>, { $typeName: string }>;

function report(statuses: readonly StatusInit[], instanceId = "ins_1", startedAtMs = 1n) {
  const troubledObjects = statuses.map((status) => ({
    controller: "deployments",
    id: "d",
    desiredVersion: 1n,
    outcome: Outcome.RETRYING,
    ...status,
  }));
  const init = { state: { instanceId, startedAtMs }, troubledObjects };
  return { report: create(ReportAgentStateRequestSchema, init), atMs: 7 };
}

const news = (before: ReturnType<typeof report> | undefined, after: ReturnType<typeof report>) =>
  troubleNews(before, after).map(({ event, kind, id, version, outcome }) =>
    `${event} ${kind} ${id} v${version} ${outcome}`.trim(),
  );

test("the first report tells of everything that is in trouble", () => {
  const first = report([
    { reason: "quota" },
    { controller: "cilium", id: "p", outcome: Outcome.PARKED, reason: "no CRD" },
    { controller: "sentinels", id: "s", outcome: Outcome.APPLIED, failing: "1 of 1 pods: CrashLoopBackOff" },
  ]);
  assert.deepEqual(news(undefined, first), [
    "troubled deployment d v1 retrying: quota",
    "troubled policy p v1 refused: no CRD",
    "troubled sentinel s v1 1 of 1 pods: CrashLoopBackOff",
  ]);
  assert.deepEqual(news(first, first), []);
});

test("another reason, outcome or version is news, another number in the reason is not", () => {
  const before = report([{ reason: "timeout after 3 s" }]);
  assert.deepEqual(news(before, report([{ reason: "timeout after 9 s" }])), []);
  assert.equal(news(before, report([{ reason: "refused" }])).length, 1);
  assert.equal(news(before, report([{ reason: "timeout after 3 s", outcome: Outcome.PARKED }])).length, 1);
  assert.equal(news(before, report([{ reason: "timeout after 3 s", desiredVersion: 2n }])).length, 1);
});

test("an agent that has just started, or lists as much as it can, says of nothing that it recovered", () => {
  const before = report([{ reason: "quota" }]);
  assert.deepEqual(news(before, report([])), ["recovered deployment d v1"]);
  assert.deepEqual(news(before, report([], "ins_2")), []);
  assert.deepEqual(
    news(before, report([], "ins_1", 2n)),
    [],
    "an id of a person's choice outlives a process",
  );
  const full = Array.from({ length: 100 }, (_, index) => ({ id: `x${index}`, reason: "quota" }));
  assert.ok(news(before, report(full)).every((line) => line.startsWith("troubled")));
  const nameless = full.map(({ reason }, index) => ({ id: "", key: `acme/x${index}`, reason }));
  assert.deepEqual(news(before, report(nameless)), [], "it may be among those that did not fit");
});

test("one that the agent still lists, by its name alone, has not recovered", () => {
  const key = "acme/web";
  const before = report([{ key, reason: "quota" }]);
  assert.deepEqual(news(before, report([{ id: "", key, reason: "quota" }])), []);
});

test("objects without an id or of an unknown controller are left out, and long reasons are cut", () => {
  const odd = report([
    { id: "", reason: "r" },
    { controller: "toString", reason: "r" },
  ]);
  assert.deepEqual(news(undefined, odd), []);
  const [entry] = troubleNews(undefined, report([{ reason: "x".repeat(5_000) }]));
  assert.ok((entry?.outcome.length ?? 0) < 400);
});
