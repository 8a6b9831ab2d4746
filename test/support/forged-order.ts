// The annotations with which an earlier krane kept an order on the object itself, as anybody can write them.
import { create, toBinary } from "@bufbuild/protobuf";
import { type ApplyDeployment, DeploymentStateSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { annotationKeys } from "../../src/model/labels.ts";

export function forgedOrder(message: ApplyDeployment, version: bigint): Record<string, string> {
  const state = create(DeploymentStateSchema, { version, state: { case: "apply", value: message } });
  return {
    [annotationKeys.origin]: "scheduler",
    "krane.unkey.com/order": Buffer.from(toBinary(DeploymentStateSchema, state)).toString("base64"),
  };
}
