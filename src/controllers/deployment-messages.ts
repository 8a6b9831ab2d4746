// What a message about a deployment says: which key it is about, and what is wanted of it.
import type { ApplyDeployment, DeleteDeployment, DeploymentState } from "../gen/ctrl/v1/deployment_pb.ts";
import {
  type DeploymentRules,
  type DeploymentSpec,
  parseApplyDeployment,
  parseDeleteDeployment,
} from "../model/deployment/spec.ts";
import { type DesiredMessage, messageKey, type ReadState } from "./desired-message.ts";

export function readDeploymentState(
  state: DeploymentState,
  rules: DeploymentRules,
): ReadState<DeploymentSpec> {
  const { version } = state;
  switch (state.state.case) {
    case "apply":
      return { kind: "message", message: readApply(state.state.value, version, rules) };
    case "delete":
      return { kind: "message", message: readDelete(state.state.value, version, rules) };
    default:
      return { kind: "bare", version, unreadable: (state.$unknown ?? []).length > 0 };
  }
}

export function readApply(
  message: ApplyDeployment,
  version: bigint,
  rules: DeploymentRules,
): DesiredMessage<DeploymentSpec> {
  const parsed = parseApplyDeployment(message, rules);
  const id = message.deploymentId === "" ? undefined : message.deploymentId;
  if (parsed.kind === "valid") {
    return { key: keyOf(message), id, version, want: { kind: "apply", spec: parsed.spec } };
  }
  const { problems } = parsed;
  return { key: messageKey(keyOf(message), problems), id, version, want: { kind: "invalid", problems } };
}

export function readDelete(
  message: DeleteDeployment,
  version: bigint,
  rules: DeploymentRules,
): DesiredMessage<DeploymentSpec> {
  const parsed = parseDeleteDeployment(message, rules);
  if (parsed.kind === "valid") {
    return { key: keyOf(message), id: undefined, version, want: { kind: "delete" } };
  }
  const { problems } = parsed;
  return {
    key: messageKey(keyOf(message), problems),
    id: undefined,
    version,
    want: { kind: "invalid", problems },
  };
}

type Named = Pick<ApplyDeployment, "k8sNamespace" | "k8sName">;

function keyOf({ k8sNamespace, k8sName }: Named): string {
  return `${k8sNamespace}/${k8sName}`;
}
