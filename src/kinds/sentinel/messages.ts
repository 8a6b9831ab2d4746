// What a message about a sentinel says: which key it is about, and what is wanted of it.

import {
  applyMessage,
  type DesiredMessage,
  deleteMessage,
  type ReadState,
  readState,
} from "../../engine/desired-message.ts";
import type { ApplySentinel, DeleteSentinel, SentinelState } from "../../gen/ctrl/v1/sentinel_pb.ts";
import { sentinelNamespace } from "../../model/labels.ts";
import { parseApplySentinel, parseDeleteSentinel, type SentinelRules, type SentinelSpec } from "./spec.ts";

export function readSentinelState(state: SentinelState, rules: SentinelRules): ReadState<SentinelSpec> {
  return readState<ApplySentinel, DeleteSentinel, SentinelSpec>(state, {
    apply: (message, version) => readApplySentinel(message, version, rules),
    delete: readDeleteSentinel,
  });
}

export function readApplySentinel(
  message: ApplySentinel,
  version: bigint,
  rules: SentinelRules,
): DesiredMessage<SentinelSpec> {
  const about = { key: keyOf(message), id: message.sentinelId, version };
  return applyMessage(about, parseApplySentinel(message, rules));
}

export function readDeleteSentinel(message: DeleteSentinel, version: bigint): DesiredMessage<SentinelSpec> {
  return deleteMessage({ key: keyOf(message), version }, parseDeleteSentinel(message));
}

type Named = Pick<ApplySentinel, "k8sName">;

function keyOf({ k8sName }: Named): string {
  return `${sentinelNamespace}/${k8sName}`;
}
