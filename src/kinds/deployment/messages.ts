// What a message about a deployment says: which key it is about, and what is wanted of it.

import {
  applyMessage,
  type DesiredMessage,
  deleteMessage,
  type ReadState,
  readState,
} from "../../engine/desired-message.ts";
import type { ApplyDeployment, DeleteDeployment, DeploymentState } from "../../gen/ctrl/v1/deployment_pb.ts";
import {
  type DeploymentRules,
  type DeploymentSpec,
  parseApplyDeployment,
  parseDeleteDeployment,
} from "./spec.ts";

export function readDeploymentState(
  state: DeploymentState,
  rules: DeploymentRules,
): ReadState<DeploymentSpec> {
  return readState<ApplyDeployment, DeleteDeployment, DeploymentSpec>(state, {
    apply: (message, version) => readApply(message, version, rules),
    delete: (message, version) => readDelete(message, version, rules),
  });
}

export function readApply(
  message: ApplyDeployment,
  version: bigint,
  rules: DeploymentRules,
): DesiredMessage<DeploymentSpec> {
  const about = { key: keyOf(message), id: message.deploymentId, version };
  return applyMessage(about, parseApplyDeployment(message, rules));
}

export function readDelete(
  message: DeleteDeployment,
  version: bigint,
  rules: DeploymentRules,
): DesiredMessage<DeploymentSpec> {
  return deleteMessage({ key: keyOf(message), version }, parseDeleteDeployment(message, rules));
}

type Named = Pick<ApplyDeployment, "k8sNamespace" | "k8sName">;

function keyOf({ k8sNamespace, k8sName }: Named): string {
  return `${k8sNamespace}/${k8sName}`;
}
