// The descriptor of sentinels. A sentinel is the proxy in front of an environment's deployments: an apps/v1 Deployment
// with four companions. All sentinels share a dedicated namespace.
import { ClusterService } from "../../gen/ctrl/v1/cluster_service_pb.ts";
import {
  ApplySentinelSchema,
  type ReportSentinelStatusRequestSchema,
  SentinelStateSchema,
} from "../../gen/ctrl/v1/sentinel_pb.ts";
import { ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import { appsDeployments, podDisruptionBudgets, services } from "../../kube/resources.ts";
import { labelKeys, sentinelNamespace } from "../../model/labels.ts";
import { type ClusterCall, keep } from "../cluster-call.ts";
import type { Kind } from "../kind.ts";
import { sentinelSelection } from "./identity.ts";
import { type SentinelReport, sentinelReports } from "./report.ts";
import type { ObservedSentinel } from "./seen.ts";
import { parseApplySentinel, parseDeleteSentinel, type SentinelSpec } from "./spec.ts";
import { sentinelView } from "./view.ts";

/** The permissions that an agent needs for this kind. */
const sentinelCalls: readonly ClusterCall[] = [
  {
    part: "agent",
    kind: appsDeployments,
    ...sentinelSelection,
    verbs: keep,
    why: "A sentinel is an apps/v1 Deployment.",
  },
  {
    part: "agent",
    kind: services,
    ...sentinelSelection,
    verbs: keep,
    why: "A sentinel is reached through a Service, and its replicas find one another through a second one.",
  },
  {
    part: "agent",
    kind: podDisruptionBudgets,
    ...sentinelSelection,
    verbs: keep,
    why: "A drained node does not take all replicas of a sentinel at once.",
  },
];

const rpc = ClusterService.method;

export const sentinelKind: Kind<
  "sentinel",
  typeof SentinelStateSchema,
  typeof ReportSentinelStatusRequestSchema,
  SentinelSpec,
  ObservedSentinel,
  SentinelReport
> = {
  name: "sentinel",
  plural: "sentinels",
  aliases: [],
  controller: "sentinels",
  objectKind: ObjectKind.SENTINEL,
  kubectlKind: "deployment",
  idLabel: labelKeys.sentinelId,
  makesPods: true,
  rpcs: {
    watch: rpc.watchSentinels,
    get: rpc.getDesiredSentinelState,
    idField: "sentinelId",
    digestKind: "sentinel",
    report: rpc.reportSentinelStatus,
  },
  applySchema: ApplySentinelSchema,
  stateSchema: SentinelStateSchema,
  idOf: ({ sentinelId }) => sentinelId,
  ownNamespace: sentinelNamespace,
  namespaceOf: () => sentinelNamespace,
  keyOf: ({ k8sName }) => `${sentinelNamespace}/${k8sName}`,
  uniqueNameOf: ({ k8sName }) => k8sName,
  deletionOf: ({ k8sName }) => ({ k8sName }),
  reports: sentinelReports,
  parseApply: parseApplySentinel,
  parseDelete: parseDeleteSentinel,
  longField: "image",
  clusterCalls: sentinelCalls,
  view: sentinelView,
  loadDocument: async () => (await import("./document.ts")).sentinelDocument,
  async loadController() {
    const { Controller } = await import("../../engine/controller.ts");
    const { sentinelRecipe } = await import("./controller.ts");
    return (options, deps) => new Controller(sentinelKind, sentinelRecipe, options, deps);
  },
};
