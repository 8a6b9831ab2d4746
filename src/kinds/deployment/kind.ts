// The descriptor of deployments. A deployment is one release of a tenant's program: a ReplicaSet in the namespace of
// its workspace.
import { ClusterService } from "../../gen/ctrl/v1/cluster_service_pb.ts";
import {
  type ApplyDeployment,
  ApplyDeploymentSchema,
  DeploymentStateSchema,
  type ReportDeploymentStatusRequestSchema,
} from "../../gen/ctrl/v1/deployment_pb.ts";
import { ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import { pods, replicaSets } from "../../kube/resources.ts";
import { components, labelKeys, ownSelector } from "../../model/labels.ts";
import { type ClusterCall, keep } from "../cluster-call.ts";
import type { Kind } from "../kind.ts";
import { type DeploymentReport, deploymentReports } from "./report.ts";
import { parseSecretsBlob, readSecretsBlob } from "./secrets-blob.ts";
import type { SeenDeployment } from "./seen.ts";
import { type DeploymentSpec, parseApplyDeployment, parseDeleteDeployment } from "./spec.ts";
import { deploymentView } from "./view.ts";

/** The permissions that an agent needs for this kind. */
const deploymentCalls: readonly ClusterCall[] = [
  {
    part: "agent",
    kind: replicaSets,
    labelSelector: ownSelector(components.deployment),
    verbs: keep,
    why: "A deployment is a ReplicaSet in the namespace of its workspace.",
  },
  {
    part: "agent",
    kind: pods,
    verbs: ["list", "watch"],
    why: "The control plane is told which pods of a deployment run, and where.",
  },
  {
    part: "agent",
    kind: pods,
    subresource: "eviction",
    verbs: ["create"],
    why: "A pod that is less isolated than its template is replaced, as far as disruption budgets allow.",
  },
];

const rpc = ClusterService.method;

export const deploymentKind: Kind<
  "deployment",
  typeof DeploymentStateSchema,
  typeof ReportDeploymentStatusRequestSchema,
  DeploymentSpec,
  SeenDeployment,
  DeploymentReport
> = {
  name: "deployment",
  plural: "deployments",
  aliases: ["deploy"],
  controller: "deployments",
  objectKind: ObjectKind.DEPLOYMENT,
  kubectlKind: "replicaset",
  idLabel: labelKeys.deploymentId,
  makesPods: true,
  rpcs: {
    watch: rpc.watchDeployments,
    get: rpc.getDesiredDeploymentState,
    idField: "deploymentId",
    digestKind: "deployment",
    report: rpc.reportDeploymentStatus,
    reportMany: rpc.reportDeploymentStatuses,
  },
  applySchema: ApplyDeploymentSchema,
  stateSchema: DeploymentStateSchema,
  idOf: ({ deploymentId }) => deploymentId,
  namespaceOf: ({ k8sNamespace }) => k8sNamespace,
  keyOf: ({ k8sNamespace, k8sName }) => `${k8sNamespace}/${k8sName}`,
  // Reports have the name without its namespace, so the name alone must be unique.
  uniqueNameOf: ({ k8sName }) => k8sName,
  deletionOf: ({ k8sNamespace, k8sName }) => ({ k8sNamespace, k8sName }),
  reports: deploymentReports,
  secrets: {
    blobOf: ({ encryptedEnvironmentVariables }) => encryptedEnvironmentVariables,
    withBlob,
    namesIn: (blob) => [...(readSecretsBlob(blob)?.keys() ?? [])].sort(),
    check: parseSecretsBlob,
  },
  parseApply: parseApplyDeployment,
  parseDelete: parseDeleteDeployment,
  longField: "command",
  clusterCalls: deploymentCalls,
  view: deploymentView,
  loadDocument: async () => (await import("./document.ts")).deploymentDocument,
  async loadController() {
    const { Controller } = await import("../../engine/controller.ts");
    const { deploymentRecipe } = await import("./controller.ts");
    return (options, deps) => new Controller(deploymentKind, deploymentRecipe, options, deps);
  },
};

function withBlob(message: ApplyDeployment, blob: Uint8Array): ApplyDeployment {
  return { ...message, encryptedEnvironmentVariables: blob };
}
