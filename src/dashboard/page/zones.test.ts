import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  ReportDeploymentStatusRequest_Update_InstanceSchema as PodSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../../gen/ctrl/v1/deployment_pb.ts";
import { zonesOf } from "./zones.ts";

const pod = (k8sName: string, zone: string, status: Status = Status.RUNNING) =>
  create(PodSchema, { k8sName, zone, status });

test("pods come by zone, those that do not run first, and those of an unknown zone last", () => {
  const zones = zonesOf([
    pod("b", "z2"),
    pod("a", ""),
    pod("d", "z1"),
    pod("c", "z1"),
    pod("e", "z1", Status.FAILED),
  ]);
  assert.deepEqual(
    zones.map(({ name, running, pods }) => [name, running, pods.map(({ k8sName }) => k8sName)]),
    [
      ["z1", 2, ["e", "c", "d"]],
      ["z2", 1, ["b"]],
      ["", 1, ["a"]],
    ],
  );
});
