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
