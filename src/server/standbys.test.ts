import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../gen/ctrl/v1/cluster_service_pb.ts";
import { currentStandbys, limitedStandby } from "./standbys.ts";

describe("a standby", () => {
  const standby = { instanceId: "ins_1", version: "1", atMs: 10 };

  test("that has become the leader is none any more, until it stands by again", () => {
    const led = (atMs: number) => {
      const report = create(ReportAgentStateRequestSchema, { state: { instanceId: "ins_1" } });
      return { standbys: [standby], state: { report, atMs } };
    };
    assert.deepEqual(currentStandbys(led(11)), []);
    assert.deepEqual(currentStandbys(led(9)), [standby]);
    assert.deepEqual(currentStandbys({}), []);
  });

  test("that was silent for an hour when others were last heard is left out", () => {
    const hourMs = 3_600_000;
    const newer = { ...standby, instanceId: "ins_2", atMs: 10 + hourMs };
    assert.deepEqual(currentStandbys({ standbys: [newer, standby] }), [newer]);
    assert.deepEqual(currentStandbys({ standbys: [{ ...newer, atMs: 9 + hourMs }, standby] }).length, 2);
    const report = create(ReportAgentStateRequestSchema, { state: { instanceId: "ins_3" } });
    assert.deepEqual(currentStandbys({ standbys: [standby], state: { report, atMs: 10 + hourMs } }), []);
  });

  test("cannot fill the database or a terminal with its texts", () => {
    const { instanceId, version } = limitedStandby({
      ...standby,
      instanceId: "x".repeat(1_000),
      version: "1\u001b[31m\n2",
    });
    assert.equal(instanceId.length, 253);
    assert.equal(version, "1 [31m 2");
  });
});
