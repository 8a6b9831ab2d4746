import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ReportDeploymentStatusRequest_Update_InstanceSchema } from "../gen/ctrl/v1/deployment_pb.ts";
import { KeptReports } from "./kept-reports.ts";

function report(...pods: readonly string[]) {
  const instances = pods.map((pod) => {
    const [k8sName = "", address = ""] = pod.split(" ");
    return create(ReportDeploymentStatusRequest_Update_InstanceSchema, { k8sName, address });
  });
  return { exists: true, instances, atMs: 1 };
}

const podsOf = (reports: KeptReports, id: string) =>
  reports.get("deployment", id)?.instances.map(({ k8sName, address }) => `${k8sName} ${address}`.trim());

test("an address moves to the pod that was reported last, across deployments", () => {
  const reports = new KeptReports();
  reports.replace("deployment", "one", report("a 1:80", "b 2:80"));
  reports.replace("deployment", "two", report("c 1:80"));
  assert.deepEqual(podsOf(reports, "one"), ["b 2:80"]);
  reports.replace("deployment", "one", report("a 1:80", "b 2:80"));
  assert.deepEqual(podsOf(reports, "one"), ["a 1:80", "b 2:80"]);
  assert.deepEqual(podsOf(reports, "two"), []);
});

test("a report that is replaced or deleted frees its addresses, and no others", () => {
  const reports = new KeptReports();
  reports.replace("deployment", "one", report("a 1:80"));
  reports.replace("deployment", "two", report("c 1:80"));
  reports.delete("deployment", "one");
  reports.replace("deployment", "three", report("d 1:80"));
  assert.deepEqual(podsOf(reports, "two"), []);
  assert.equal(reports.get("deployment", "one"), undefined);
  assert.deepEqual(podsOf(reports, "three"), ["d 1:80"]);
});

test("pods without an address do not push each other out", () => {
  const reports = new KeptReports();
  reports.replace("deployment", "one", report("a", "b"));
  reports.replace("deployment", "two", report("c"));
  assert.deepEqual(podsOf(reports, "one"), ["a", "b"]);
});

test("of two entries for one pod or one address within a report the later one counts", () => {
  const reports = new KeptReports();
  reports.replace("deployment", "one", report("old 1:80", "new 1:80", "b 2:80", "b 3:80"));
  assert.deepEqual(podsOf(reports, "one"), ["new 1:80", "b 3:80"]);
});
