// The kinds of document: their fields, and the model's word on what they add up to.
import { create } from "@bufbuild/protobuf";
import {
  type ApplyCiliumNetworkPolicy,
  ApplyCiliumNetworkPolicySchema,
} from "../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { type ApplyDeployment, ApplyDeploymentSchema } from "../gen/ctrl/v1/deployment_pb.ts";
import { type ApplySentinel, ApplySentinelSchema } from "../gen/ctrl/v1/sentinel_pb.ts";
import { parseApplyDeployment } from "../kinds/deployment/spec.ts";
import { parseApplyPolicy } from "../kinds/policy/spec.ts";
import { parseApplySentinel } from "../kinds/sentinel/spec.ts";
import { collectProblems, type FieldProblem, type ParsedMessage } from "../model/field-problem.ts";
import { type MessageRules, parseId } from "../model/message-fields.ts";
import type { DocumentContent, EnvironmentSpec } from "./document.ts";
import { type Field, field } from "./fields.ts";
import { count, cpu, encryptedSecrets, jsonObject, memory, text, texts } from "./formats.ts";

/** What the agent of a region accepts, as far as it is known here. */
export type DocumentRules = MessageRules;

export interface Kind<C, D extends DocumentContent> {
  /** As documents write it. */
  readonly word: string;
  readonly kind: D["kind"];
  readonly holds: string;
  readonly fields: readonly Field<C>[];
  judge(content: Partial<C>, rules: DocumentRules): readonly FieldProblem[];
  documentOf(content: Partial<C>): D;
  contentOf(document: D): C;
}

type ContentOf<K extends DocumentContent["kind"]> = Extract<DocumentContent, { kind: K }>;

type Plain<M> = Omit<M, "$typeName" | "$unknown">;
type PolicyFields = Plain<ApplyCiliumNetworkPolicy> & { readonly deploymentId: string };

const required = { isRequired: true } as const;
const defaults = {
  replicas: { fallback: 1 },
  cpu: { fallback: 250n },
  memory: { fallback: 256n },
} as const;

const healthcheckNames = [
  "method",
  "path",
  "intervalSeconds",
  "timeoutSeconds",
  "failureThreshold",
  "initialDelaySeconds",
];

export const deploymentKind: Kind<Plain<ApplyDeployment>, ContentOf<"deployment">> = {
  word: "Deployment",
  kind: "deployment",
  holds: "A program of a customer: a ReplicaSet in the namespace of its workspace.",
  fields: [
    field("id", "deploymentId", text, "Identifies it for good.", required),
    field(
      "name",
      "k8sName",
      text,
      "The name of its ReplicaSet: a DNS label that starts with a letter.",
      required,
    ),
    field(
      "namespace",
      "k8sNamespace",
      text,
      "The namespace of its workspace; made when it is missing.",
      required,
    ),
    field("workspace", "workspaceId", text, "The id of the workspace that owns it.", required),
    field("project", "projectId", text, "The id of the project within the workspace.", required),
    field("environment", "environmentId", text, "The id of the environment within the project.", required),
    field("image", "image", text, "The reference of the container image.", required),
    field("replicas", "replicas", count, "How many pods to keep running; 0 pauses it.", defaults.replicas),
    field("cpu", "cpuMillicores", cpu, "The CPU limit of a pod; a quarter of it is requested.", defaults.cpu),
    field(
      "memory",
      "memoryMib",
      memory,
      "The memory limit of a pod; a quarter of it is requested.",
      defaults.memory,
    ),
    field("port", "port", count, "The port that the program listens on; without it 8080."),
    field("command", "command", texts, "The program and its arguments, in place of the image's own."),
    field(
      "shutdownSignal",
      "shutdownSignal",
      text,
      "What stops it: SIGTERM, SIGINT, SIGQUIT or SIGKILL; without it SIGTERM.",
    ),
    field("buildId", "buildId", text, "The build that made the image; only a label."),
    field(
      "healthcheck",
      "healthcheck",
      jsonObject("a mapping", healthcheckNames),
      `How it is probed: ${healthcheckNames.join(", ")}. Without it there are no probes.`,
    ),
    field(
      "encryptedSecrets",
      "encryptedEnvironmentVariables",
      encryptedSecrets,
      "Variables, each as `krane vault encrypt` prints it for the environment and the name. Without it the deployment gets the secrets of its environment.",
    ),
  ],
  judge: (content, rules) => problemsOf(parseApplyDeployment(create(ApplyDeploymentSchema, content), rules)),
  documentOf: (content) => ({ kind: "deployment", spec: create(ApplyDeploymentSchema, content) }),
  contentOf: ({ spec }) => spec,
};

export const sentinelKind: Kind<Plain<ApplySentinel>, ContentOf<"sentinel">> = {
  word: "Sentinel",
  kind: "sentinel",
  holds:
    "What stands in front of the deployments of an environment. Its objects are in the namespace `sentinel`.",
  fields: [
    field("id", "sentinelId", text, "Identifies it for good.", required),
    field(
      "name",
      "k8sName",
      text,
      "The name of its objects: a DNS label of at most 52 characters.",
      required,
    ),
    field("workspace", "workspaceId", text, "The id of the workspace that owns it.", required),
    field("project", "projectId", text, "The id of the project within the workspace.", required),
    field(
      "environment",
      "environmentId",
      text,
      "The id of the environment whose traffic it takes.",
      required,
    ),
    field("image", "image", text, "The reference of the container image.", required),
    field("replicas", "replicas", count, "How many pods to keep running; 0 pauses it.", defaults.replicas),
    field("cpu", "cpuMillicores", cpu, "The CPU share of a pod.", defaults.cpu),
    field("memory", "memoryMib", memory, "The memory of a pod.", defaults.memory),
  ],
  judge: (content, rules) => problemsOf(parseApplySentinel(create(ApplySentinelSchema, content), rules)),
  documentOf: (content) => ({ kind: "sentinel", spec: create(ApplySentinelSchema, content) }),
  contentOf: ({ spec }) => spec,
};

export const policyKind: Kind<PolicyFields, ContentOf<"policy">> = {
  word: "Policy",
  kind: "policy",
  holds: "A CiliumNetworkPolicy.",
  fields: [
    field("id", "ciliumNetworkPolicyId", text, "Identifies it for good.", required),
    field("name", "k8sName", text, "The name of the policy.", required),
    field("namespace", "k8sNamespace", text, "Where it goes; made when it is missing.", required),
    field(
      "deployment",
      "deploymentId",
      text,
      "The id of the deployment that it belongs to and is deleted with.",
    ),
    field(
      "policy",
      "policy",
      jsonObject("a mapping"),
      "The policy itself: `apiVersion: cilium.io/v2`, `kind: CiliumNetworkPolicy`, and `spec` or `specs`. Its metadata has no effect.",
      required,
    ),
  ],
  judge: ({ deploymentId = "", ...content }, rules) => [
    ...problemsOf(parseApplyPolicy(create(ApplyCiliumNetworkPolicySchema, content), rules)),
    ...(deploymentId === ""
      ? []
      : problemsOf(collectProblems((refuse) => parseId("deployment_id", deploymentId, refuse)))),
  ],
  documentOf: ({ deploymentId = "", ...content }) => ({
    kind: "policy",
    spec: create(ApplyCiliumNetworkPolicySchema, content),
    deploymentId,
  }),
  contentOf: ({ spec, deploymentId }) => ({ ...spec, deploymentId }),
};

export const environmentKind: Kind<EnvironmentSpec, ContentOf<"environment">> = {
  word: "Environment",
  kind: "environment",
  holds: "A stage of a project, such as production. It holds the secrets that its deployments get.",
  fields: [
    field("id", "id", text, "Identifies it for good; also names the keyring of its secrets.", required),
    field("workspace", "workspaceId", text, "The id of the workspace that owns it.", required),
    field("project", "projectId", text, "The id of the project within the workspace.", required),
  ],
  judge: ({ id = "", workspaceId = "", projectId = "" }) =>
    problemsOf(
      collectProblems((refuse) => [
        parseId("id", id, refuse),
        parseId("workspace_id", workspaceId, refuse),
        parseId("project_id", projectId, refuse),
      ]),
    ),
  documentOf: ({ id = "", workspaceId = "", projectId = "" }) => ({
    kind: "environment",
    spec: { id, workspaceId, projectId },
  }),
  contentOf: ({ spec }) => spec,
};

function problemsOf(parsed: ParsedMessage<unknown>): readonly FieldProblem[] {
  return parsed.kind === "valid" ? [] : parsed.problems;
}
