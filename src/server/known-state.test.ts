import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { ReportAgentStateRequestSchema } from "../gen/ctrl/v1/cluster_service_pb.ts";
import {
  type AgentStatus,
  ObjectStatus_Outcome as Outcome,
  StreamStatusSchema,
} from "../gen/krane/v1/agent_pb.ts";
import { clearForeignVersions, hasSettled, knownAfter, settledBy } from "./known-state.ts";

const versionMax = 12;
const versions = Array.from({ length: versionMax }, (_, index) => BigInt(index + 1));

type Stream = {
  readonly cursor: bigint;
  readonly settledUpTo: bigint;
  readonly unsettled: bigint[];
  readonly incarnation?: string;
};

const streams: fc.Arbitrary<Stream> = fc.record({
  cursor: fc.bigInt(0n, BigInt(versionMax)),
  settledUpTo: fc.bigInt(0n, BigInt(versionMax)),
  unsettled: fc.uniqueArray(fc.constantFrom(...versions), { maxLength: 5 }),
});

const reportOf = (instanceId: string, stream: Partial<Stream>, ...troubled: readonly [string, bigint][]) => ({
  report: create(ReportAgentStateRequestSchema, {
    state: { instanceId, controllers: [{ name: "deployments", stream }] },
    troubledObjects: troubled.map(([id, desiredVersion]) => ({
      controller: "deployments",
      id,
      desiredVersion,
      outcome: Outcome.PARKED,
    })),
  }),
  atMs: 0,
});

const streamOf = (state: AgentStatus | undefined) =>
  state?.controllers.find(({ name }) => name === "deployments")?.stream;
const counter = BigInt(versionMax);

test("a version is settled if any report said so, and not otherwise", () => {
  fc.assert(
    fc.property(fc.array(streams, { minLength: 1, maxLength: 5 }), (said) => {
      let known: ReturnType<typeof knownAfter> | undefined;
      for (const [index, stream] of said.entries()) {
        known = knownAfter({ known }, reportOf(`ins_${index}`, stream), counter);
      }
      const all = settledBy(streamOf(known?.report.state));
      const facts = said.map((stream) => settledBy(create(StreamStatusSchema, stream)));
      for (const version of versions) {
        const isSaid = facts.some((fact) => hasSettled(fact, version));
        assert.equal(hasSettled(all, version), isSaid, `version ${version}`);
      }
    }),
  );
});

const reportOfCluster = (clusterId: string, atMs: number, cursor = 9n) => {
  const { report } = reportOf(`ins_${clusterId}`, { cursor });
  if (report.state !== undefined) report.state.clusterId = clusterId;
  return { report, atMs };
};

test("a second cluster of the region is remembered for two minutes, and settles nothing for the first", () => {
  const others = (known: ReturnType<typeof knownAfter>) =>
    known.report.state?.otherClusters.map((one) => `${one.clusterId} ${one.instanceId} ${one.heardAtMs}`);
  const first = knownAfter({}, reportOfCluster("a", 1_000), counter);
  assert.deepEqual(others(first), []);
  const second = knownAfter({ known: first }, reportOfCluster("b", 5_000, 2n), counter);
  assert.deepEqual(others(second), ["a ins_a 1000"]);
  assert.equal(settledBy(streamOf(second.report.state)).upTo, 2n);
  const third = knownAfter({ known: second }, reportOfCluster("a", 31_000), counter);
  assert.deepEqual(others(third), ["b ins_b 5000"]);
  const alone = knownAfter({ known: third }, reportOfCluster("a", 125_000), counter);
  assert.deepEqual(others(alone), ["b ins_b 5000"]);
  assert.deepEqual(others(knownAfter({ known: alone }, reportOfCluster("a", 125_001), counter)), []);
});

test("an agent that names no cluster is not taken for one of another cluster", () => {
  const named = knownAfter({}, reportOfCluster("a", 1_000), counter);
  const unnamed = knownAfter({ known: named }, reportOfCluster("", 2_000, 3n), counter);
  assert.deepEqual(unnamed.report.state?.otherClusters, []);
  assert.equal(settledBy(streamOf(unnamed.report.state)).upTo, 9n);
  const again = knownAfter({ known: unnamed }, reportOfCluster("a", 3_000), counter);
  assert.deepEqual(again.report.state?.otherClusters, []);
});

test("versions of another incarnation settle nothing", () => {
  const before = knownAfter({}, reportOf("ins_1", { cursor: 9n, incarnation: "a-1" }), counter);
  const started = knownAfter({ known: before }, reportOf("ins_2", { cursor: 0n }), counter);
  assert.equal(settledBy(streamOf(started.report.state)).upTo, 9n, "a process that has heard nothing yet");
  const after = knownAfter(
    { known: started },
    reportOf("ins_2", { cursor: 2n, incarnation: "b-1" }),
    counter,
  );
  assert.equal(settledBy(streamOf(after.report.state)).upTo, 2n);

  const { report } = reportOf("ins_2", { cursor: 9n, settledUpTo: 9n, unsettled: [8n], incarnation: "a-1" });
  clearForeignVersions(report, "a-1");
  assert.equal(settledBy(streamOf(report.state)).upTo, 9n);
  clearForeignVersions(report, "b-1");
  assert.deepEqual(settledBy(streamOf(report.state)), { upTo: 0n, except: [] });
});

test("a controller that is missing from a report keeps its settled versions", () => {
  const known = knownAfter({}, reportOf("ins_1", { cursor: 3n }), counter);
  const silent = {
    report: create(ReportAgentStateRequestSchema, { state: { instanceId: "ins_2", controllers: [] } }),
    atMs: 1,
  };
  const after = knownAfter({ known }, silent, counter);
  assert.equal(streamOf(after.report.state)?.settledUpTo, 3n);
});

test("trouble of an earlier agent is kept until this one lists the object, or has settled it", () => {
  const first = reportOf("ins_1", { cursor: 5n }, ["a", 2n], ["b", 4n]);
  const troubled = (cursor: bigint, ...listed: readonly [string, bigint][]) => {
    const known = knownAfter({}, first, counter);
    const after = knownAfter({ known, state: first }, reportOf("ins_2", { cursor }, ...listed), counter);
    return after.report.troubledObjects.map(({ id, desiredVersion }) => `${id}@${desiredVersion}`);
  };
  assert.deepEqual(troubled(0n), ["a@2", "b@4"]);
  assert.deepEqual(troubled(3n), ["b@4"]);
  assert.deepEqual(troubled(0n, ["b", 6n]), ["b@6", "a@2"]);
  const same = reportOf("ins_1", { cursor: 5n }, ["b", 4n]);
  const after = knownAfter({ known: knownAfter({}, first, counter), state: first }, same, counter);
  assert.deepEqual(
    after.report.troubledObjects.map(({ id }) => id),
    ["b"],
    "it listed both before",
  );
});

test("if an agent had more troubles than it lists, its settled versions may have been rejected", () => {
  const troubled = Array.from({ length: 100 }, (_, index): [string, bigint] => [`a${index}`, 1n]);
  const state = reportOf("ins_1", { cursor: 9n }, ...troubled);
  const known = knownAfter({}, state, counter);
  const settledWith = (instanceId: string) => {
    const after = knownAfter({ known, state }, reportOf(instanceId, { cursor: 3n }), counter);
    return settledBy(streamOf(after.report.state)).upTo;
  };
  // Those that it settles itself leave the list, and one that was refused and never listed would look applied.
  assert.equal(settledWith("ins_2"), 3n);
  assert.equal(settledWith("ins_1"), 9n);
});

test("the count of rejections includes those left by earlier agents, once each", () => {
  const counting = (parked: number, ...report: Parameters<typeof reportOf>) => {
    const state = reportOf(...report);
    for (const controller of state.report.state?.controllers ?? []) controller.parked = parked;
    return state;
  };
  const first = counting(2, "ins_1", { cursor: 5n }, ["a", 2n], ["b", 4n]);
  let known = knownAfter({}, first, counter);
  const parked = () => known.report.state?.controllers.map((controller) => controller.parked);
  // It lists one of three, and with the two that it has not come to there are as many on the list as it refused.
  const second = counting(3, "ins_2", {}, ["c", 6n]);
  known = knownAfter({ known, state: first }, second, counter);
  assert.deepEqual([parked(), known.report.troubledObjects.length], [[5], 3]);
  const silent = {
    report: create(ReportAgentStateRequestSchema, { state: { instanceId: "ins_2", controllers: [] } }),
    atMs: 1,
  };
  known = knownAfter({ known, state: second }, silent, counter);
  assert.deepEqual(parked(), [5]);
  const most = 2 ** 32 - 1;
  known = knownAfter({ known, state: second }, counting(most, "ins_3", {}), counter);
  assert.deepEqual(parked(), [most], "more than that fits into no message");
});

test("trouble with a version of another life of the control plane ends with its agent", () => {
  const state = reportOf("ins_1", { cursor: 40n }, ["a", 40n], ["b", 2n]);
  const known = knownAfter({}, state, counter);
  const after = knownAfter({ known, state }, reportOf("ins_2", {}), counter);
  // The counter may never come that far again, and the object would be in trouble until then.
  assert.deepEqual(
    after.report.troubledObjects.map(({ id }) => id),
    ["b"],
  );
});

test("no more trouble is kept than a report may list", () => {
  const many = (prefix: string) =>
    Array.from({ length: 150 }, (_, index): [string, bigint] => [`${prefix}${index}`, 9n]);
  const state = reportOf("ins_1", {}, ...many("a"));
  const known = knownAfter({}, state, counter);
  const next = reportOf("ins_2", {}, ...many("b"));
  const { troubledObjects } = knownAfter({ known, state }, next, counter).report;
  const ofThisOne = troubledObjects.filter(({ id }) => id.startsWith("b"));
  assert.deepEqual([troubledObjects.length, ofThisOne.length], [200, 150]);
});
