// What a message about a sentinel says: which key it is about, and what is wanted of it.
import type { ApplySentinel, DeleteSentinel, SentinelState } from "../gen/ctrl/v1/sentinel_pb.ts";
import { sentinelNamespace } from "../model/labels.ts";
import {
  parseApplySentinel,
  parseDeleteSentinel,
  type SentinelRules,
  type SentinelSpec,
} from "../model/sentinel/spec.ts";
import { type DesiredMessage, messageKey, type ReadState } from "./desired-message.ts";

export function readSentinelState(state: SentinelState, rules: SentinelRules): ReadState<SentinelSpec> {
  const { version } = state;
  switch (state.state.case) {
    case "apply":
      return { kind: "message", message: readApplySentinel(state.state.value, version, rules) };
    case "delete":
      return { kind: "message", message: readDeleteSentinel(state.state.value, version) };
    default:
      return { kind: "bare", version, unreadable: (state.$unknown ?? []).length > 0 };
  }
}

export function readApplySentinel(
  message: ApplySentinel,
  version: bigint,
  rules: SentinelRules,
): DesiredMessage<SentinelSpec> {
  const parsed = parseApplySentinel(message, rules);
  const id = message.sentinelId === "" ? undefined : message.sentinelId;
  if (parsed.kind === "valid") {
    return { key: keyOf(message), id, version, want: { kind: "apply", spec: parsed.spec } };
  }
  const { problems } = parsed;
  return { key: messageKey(keyOf(message), problems), id, version, want: { kind: "invalid", problems } };
}

export function readDeleteSentinel(message: DeleteSentinel, version: bigint): DesiredMessage<SentinelSpec> {
  const parsed = parseDeleteSentinel(message);
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

type Named = Pick<ApplySentinel, "k8sName">;

function keyOf({ k8sName }: Named): string {
  return `${sentinelNamespace}/${k8sName}`;
}
