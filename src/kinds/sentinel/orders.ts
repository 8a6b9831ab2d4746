// Orders about sentinels that come by a call: how they are kept on the apps/v1 Deployment, and read from it
// again by the next krane. What is kept is a message of the stream with the version that the order stands
// on, so that a replay of what it replaced does not undo it, before a restart or after.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DesiredMessage } from "../../engine/desired-message.ts";
import {
  type ApplySentinel,
  type SentinelState,
  SentinelStateSchema,
} from "../../gen/ctrl/v1/sentinel_pb.ts";
import { openOrder, sealOrder } from "../../model/kept-order.ts";
import { readApplySentinel, readSentinelState } from "./messages.ts";
import type { SentinelDeploymentProjection } from "./projections.ts";
import type { SentinelRules, SentinelSpec } from "./spec.ts";

/** `versionOf`: the version of what is known about a key. */
export function readSentinelOrder(
  message: ApplySentinel,
  versionOf: (key: string) => bigint,
  rules: SentinelRules,
): DesiredMessage<SentinelSpec> {
  const read = readApplySentinel(message, 0n, rules);
  if (read.want.kind !== "apply") return read;
  const version = versionOf(read.key);
  const state = create(SentinelStateSchema, { version, state: { case: "apply", value: message } });
  const kept = { text: sealOrder(toBinary(SentinelStateSchema, state), "") };
  return { ...read, version, want: { kind: "apply", spec: { ...read.want.spec, kept } } };
}

/** The order that made a live sentinel; undefined where it does not tell, or tells of another one. */
export function restoreSentinelOrder(
  { namespace, name, sentinelId, ordered }: SentinelDeploymentProjection,
  rules: SentinelRules,
): DesiredMessage<SentinelSpec> | undefined {
  if (ordered?.text === undefined) return undefined;
  const { text } = ordered;
  const state = stateOf(openOrder(text, ""));
  const read = state && readSentinelState(state, rules);
  if (read?.kind !== "message") return undefined;
  const { message } = read;
  if (message.key !== `${namespace}/${name}` || message.id !== sentinelId) return undefined;
  if (message.want.kind !== "apply") return message;
  return { ...message, want: { kind: "apply", spec: { ...message.want.spec, kept: { text } } } };
}

function stateOf(bytes: Uint8Array | undefined): SentinelState | undefined {
  try {
    return bytes && fromBinary(SentinelStateSchema, bytes);
  } catch {
    return undefined;
  }
}
