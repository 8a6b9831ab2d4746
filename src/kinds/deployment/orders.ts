// Orders about deployments that come by a call: how they are kept on the ReplicaSet, and read from it again
// by the next krane. What is kept is a message of the stream with the version that the order stands on, so
// that a replay of what it replaced does not undo it, before a restart or after.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DesiredMessage } from "../../engine/desired-message.ts";
import { invalidOrder } from "../../engine/order-problems.ts";
import {
  type ApplyDeployment,
  type DeploymentState,
  DeploymentStateSchema,
} from "../../gen/ctrl/v1/deployment_pb.ts";
import { openOrder, orderTextMax, readinessIdMax, sealOrder } from "../../model/kept-order.ts";
import { readApply, readDeploymentState } from "./messages.ts";
import type { ReplicaSetProjection } from "./projections.ts";
import type { DeploymentRules, DeploymentSpec } from "./spec.ts";

export interface DeploymentOrder {
  readonly message: ApplyDeployment;
  /** A token of the caller's, kept on the ReplicaSet. */
  readonly readinessId?: string | undefined;
}

/** `versionOf`: the version of what is known about a key. */
export function readDeploymentOrder(
  { message, readinessId }: DeploymentOrder,
  versionOf: (key: string) => bigint,
  rules: DeploymentRules,
): DesiredMessage<DeploymentSpec> {
  const read = readApply(message, 0n, rules);
  if (read.want.kind !== "apply") return read;
  if (readinessId !== undefined && readinessId.length > readinessIdMax)
    return invalidOrder(read, "readiness_id", `must have at most ${readinessIdMax} characters`);
  const version = versionOf(read.key);
  const { spec } = read.want;
  const apply = { ...message, encryptedEnvironmentVariables: new Uint8Array() };
  const state = create(DeploymentStateSchema, { version, state: { case: "apply", value: apply } });
  const text = sealOrder(toBinary(DeploymentStateSchema, state), spec.secretsBlob);
  // Of all fields only the command can be long.
  if (text.length > orderTextMax) return invalidOrder(read, "command", "is too long to be kept");
  const kept = { text, ...(readinessId !== undefined && { readinessId }) };
  return { ...read, version, want: { kind: "apply", spec: { ...spec, kept } } };
}

/** The order that made a live ReplicaSet; undefined where it does not tell, or tells of another one. */
export function restoreDeploymentOrder(
  { namespace, name, deploymentId, ordered }: ReplicaSetProjection,
  rules: DeploymentRules,
): DesiredMessage<DeploymentSpec> | undefined {
  if (ordered?.text === undefined) return undefined;
  const { text, blob, readinessId } = ordered;
  const state = stateOf(openOrder(text, blob));
  if (state?.state.case !== "apply") return undefined;
  const apply = state.state.value;
  apply.encryptedEnvironmentVariables = Uint8Array.from(Buffer.from(blob, "base64"));
  const read = readDeploymentState(state, rules);
  if (read.kind !== "message") return undefined;
  const { message } = read;
  if (message.key !== `${namespace}/${name}` || message.id !== deploymentId) return undefined;
  if (message.want.kind !== "apply") return message;
  const kept = { text, ...(readinessId !== undefined && { readinessId }) };
  return { ...message, want: { kind: "apply", spec: { ...message.want.spec, kept } } };
}

function stateOf(bytes: Uint8Array | undefined): DeploymentState | undefined {
  try {
    return bytes && fromBinary(DeploymentStateSchema, bytes);
  } catch {
    return undefined;
  }
}
