import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { ClusterService } from "../gen/ctrl/v1/cluster_service_pb.ts";
import { SchedulerService } from "../gen/krane/v1/scheduler_pb.ts";
import { VaultService } from "../gen/vault/v1/service_pb.ts";
import { createReflectionIndex, type ReflectionResponse } from "./reflection-index.ts";

const index = createReflectionIndex([SchedulerService, ClusterService]);

function filesOf(response: ReflectionResponse): FileDescriptorProto[] {
  if (response.case !== "fileDescriptorResponse") return assert.fail(`it returned ${response.case}`);
  return response.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
}

describe("reflection", () => {
  test("lists exactly the services of the port", () => {
    const response = index.respond({ case: "listServices", value: "*" });
    assert.deepEqual(response, {
      case: "listServicesResponse",
      value: { service: [{ name: "krane.v1.SchedulerService" }, { name: "ctrl.v1.ClusterService" }] },
    });
    assert.equal(
      index.respond({ case: "fileContainingSymbol", value: VaultService.typeName }).case,
      "errorResponse",
    );
  });

  for (const value of [
    "krane.v1.SchedulerService",
    "krane.v1.SchedulerService.Watch",
    "krane.v1.State",
    "krane.v1.State.Deployment.Instance",
    "krane.v1.State.Deployment.Instance.address",
    "krane.v1.State.Deployment.Instance.Status",
    "krane.v1.State.Deployment.Instance.STATUS_RUNNING",
    "krane.v1.State.state",
  ])
    test(`finds the file that defines ${value}`, () => {
      const [file] = filesOf(index.respond({ case: "fileContainingSymbol", value }));
      assert.equal(file?.name, "krane/v1/scheduler.proto");
    });

  test("returns a file with all its imports, so that a client needs no other", () => {
    const files = filesOf(index.respond({ case: "fileByFilename", value: "ctrl/v1/cluster_service.proto" }));
    const names = files.map(({ name }) => name);
    assert.equal(names[0], "ctrl/v1/cluster_service.proto");
    assert.equal(new Set(names).size, names.length);
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [...files].reverse() }));
    assert.equal(registry.getService(ClusterService.typeName)?.methods.length, ClusterService.methods.length);
  });

  test("has no extensions, and returns not_found for unknown names", () => {
    const type = "krane.v1.State";
    assert.deepEqual(index.respond({ case: "allExtensionNumbersOfType", value: type }), {
      case: "allExtensionNumbersResponse",
      value: { baseTypeName: type, extensionNumber: [] },
    });
    for (const question of [
      { case: "fileByFilename", value: "nothing.proto" },
      { case: "fileContainingSymbol", value: "krane.v1.Nothing" },
      { case: "allExtensionNumbersOfType", value: "krane.v1.Nothing" },
      { case: "fileContainingExtension", value: { containingType: type, extensionNumber: 1 } },
      { case: undefined },
    ] as const)
      assert.equal(index.respond(question).case, "errorResponse");
  });
});
