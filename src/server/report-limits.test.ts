import assert from "node:assert/strict";
import { test } from "node:test";
import { create, equals, toBinary } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../gen/ctrl/v1/cluster_service_pb.ts";
import { limitReport } from "./report-limits.ts";

const reportOf = (count: number, reason: string, desiredVersion = 7n) =>
  create(ReportAgentStateRequestSchema, {
    state: { instanceId: "ins_1", controllers: [{ name: "deployments" }] },
    troubledObjects: Array.from({ length: count }, (_, index) => ({
      controller: "deployments",
      key: `one/app-${index}`,
      id: `d_${index}`,
      desiredVersion,
      reason,
    })),
    blockedDeletions: Array.from({ length: count }, (_, index) => ({ key: `one/app-${index}`, reason })),
  });

test("a report as agents send them is kept as it is", () => {
  const report = reportOf(100, "quota exceeded: ümläut");
  assert.ok(equals(ReportAgentStateRequestSchema, limitReport(report), report));
});

test("lists and texts are cut, and so is everything together", () => {
  const report = reportOf(1_000, "x".repeat(100_000));
  const state = report.state ?? assert.fail("it has a state");
  state.version = "1".repeat(1_000_000);
  state.controllers = Array.from({ length: 1_000 }, () => state.controllers[0] ?? assert.fail("it has one"));
  state.$unknown = [{ no: 99, wireType: 2, data: new Uint8Array(1_000_000) }];
  const limited = limitReport(report);
  assert.equal(limited.troubledObjects.length, 200);
  assert.equal(limited.blockedDeletions.length, 200);
  assert.equal(limited.troubledObjects[199]?.id, "d_199", "the first ones stay");
  assert.ok(toBinary(ReportAgentStateRequestSchema, limited).length < 500_000);
  assert.equal(report.troubledObjects.length, 1_000, "the report itself is nobody's to change");
});

test("more strangers are kept than other objects, with shorter texts", () => {
  const strangers = (count: number, reason: string) =>
    create(ReportAgentStateRequestSchema, {
      strangers: Array.from({ length: count }, (_, index) => ({ name: `app-${index}`, reason })),
    });
  const usual = strangers(1_100, "it is of another region");
  assert.ok(equals(ReportAgentStateRequestSchema, limitReport(usual), usual));
  const limited = limitReport(strangers(5_000, "x".repeat(100_000)));
  assert.equal(limited.strangers.length, 1_100);
  assert.ok(toBinary(ReportAgentStateRequestSchema, limited).length < 500_000);
});

test("a long list of unsettled versions does not become settled by being cut", () => {
  const stream = (count: number) => ({
    cursor: 3n,
    settledUpTo: 900n,
    unsettled: Array.from({ length: count }, (_, index) => BigInt(index + 4)),
  });
  const limitedTo = (count: number) => {
    const controllers = [{ name: "deployments", stream: stream(count) }];
    const report = create(ReportAgentStateRequestSchema, { state: { controllers } });
    const limited = limitReport(report).state?.controllers[0]?.stream;
    return [limited?.cursor, limited?.settledUpTo, limited?.unsettled.length];
  };
  assert.deepEqual(limitedTo(200), [3n, 900n, 200]);
  assert.deepEqual(limitedTo(201), [3n, 3n, 0]);
});

test("control characters and numbers that no database holds are made harmless", () => {
  const [object] = limitReport(reportOf(1, "a\u0000b\u001b[31m\r\nc", 2n ** 64n - 1n)).troubledObjects;
  assert.deepEqual([object?.reason, object?.desiredVersion], ["a b [31m c", 2n ** 63n - 1n]);
});
