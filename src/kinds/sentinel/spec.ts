// Parses a message of the control plane to a trusted SentinelSpec, or to the list of its problems. No later code checks
// a name, number or image again.
import type { ApplySentinel, DeleteSentinel } from "../../gen/ctrl/v1/sentinel_pb.ts";
import { collectProblems, type ParsedMessage, quote, type Refuse } from "../../model/field-problem.ts";
import type { ImageReference } from "../../model/image-reference.ts";
import type { KeptOrder } from "../../model/kept-order.ts";
import { sentinelNamespace } from "../../model/labels.ts";
import {
  type MessageRules,
  parseCpu,
  parseId,
  parseImage,
  parseMemory,
  parseName,
  parseReplicas,
} from "../../model/message-fields.ts";
import { gossipSuffix } from "../../model/names.ts";
import { type SentinelIdentity, sentinelNameLengthMax } from "./identity.ts";

export interface SentinelSpec extends SentinelRef, SentinelIdentity {
  readonly image: ImageReference;
  /** 0 pauses it. */
  readonly replicas: number;
  readonly cpuMillicores: number;
  readonly memoryMib: number;
  /** Absent if it came from the control plane's stream. */
  readonly kept?: KeptOrder;
}

/** Namespace and name of a sentinel's apps/v1 Deployment; those of the other objects derive from it. */
export interface SentinelRef {
  readonly namespace: typeof sentinelNamespace;
  readonly name: string;
}

export function parseApplySentinel(
  message: ApplySentinel,
  rules: Pick<MessageRules, "registries">,
): ParsedMessage<SentinelSpec> {
  return collectProblems((refuse) => ({
    ...parseRef(message.k8sName, refuse),
    workspaceId: parseId("workspace_id", message.workspaceId, refuse),
    projectId: parseId("project_id", message.projectId, refuse),
    environmentId: parseId("environment_id", message.environmentId, refuse),
    sentinelId: parseId("sentinel_id", message.sentinelId, refuse),
    image: parseImage(message.image, rules.registries, refuse),
    replicas: parseReplicas(message.replicas, refuse),
    cpuMillicores: parseCpu(message.cpuMillicores, refuse),
    memoryMib: parseMemory(message.memoryMib, refuse),
  }));
}

export function parseDeleteSentinel(message: DeleteSentinel): ParsedMessage<SentinelRef> {
  return collectProblems((refuse) => parseRef(message.k8sName, refuse));
}

function parseRef(k8sName: string, refuse: Refuse): SentinelRef {
  const name = parseName("k8s_name", k8sName, sentinelNameLengthMax, refuse);
  // The Service of such a sentinel would be the same object as the gossip Service of another one.
  if (name.endsWith(gossipSuffix)) {
    refuse("k8s_name", `must not end in ${quote(gossipSuffix)}, as the gossip objects of sentinels do`);
  }
  return { namespace: sentinelNamespace, name };
}
