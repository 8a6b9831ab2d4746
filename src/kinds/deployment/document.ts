// Deployment documents: the fields that users write, and the manifests that `krane render` shows for them.
import { create, fromBinary } from "@bufbuild/protobuf";
import { defineDocument, problemsOf } from "../../documents/document-kind.ts";
import { type Field, field } from "../../documents/fields.ts";
import {
  type Bytes,
  count,
  cpu,
  type Format,
  jsonObject,
  memory,
  oneOf,
  text,
  texts,
  textsByName,
  utf8,
} from "../../documents/formats.ts";
import { jsonOf, wordOf } from "../../documents/source-tree.ts";
import { type ApplyDeployment, ApplyDeploymentSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import { EncryptedSchema } from "../../gen/vault/v1/object_pb.ts";
import { quote } from "../../model/field-problem.ts";
import { fallbacks, type KindDocument, type ObjectContent, type Plain, required } from "../kind-document.ts";
import { desiredDeployment } from "./desired.ts";
import { desiredIngressPolicy } from "./ingress-policy.ts";
import { readSecretsBlob } from "./secrets-blob.ts";
import { type DeploymentSpec, parseApplyDeployment, shutdownSignals } from "./spec.ts";

const nonceBytes = 12;
const tagBytes = 16;

/** Whether a text is a ciphertext from the vault. */
function isCiphertext(value: unknown): value is string {
  if (typeof value !== "string" || !/^[A-Za-z0-9+/]+={0,2}$/.test(value)) return false;
  try {
    const { nonce, ciphertext, encryptionKeyId } = fromBinary(EncryptedSchema, Buffer.from(value, "base64"));
    return nonce.length === nonceBytes && ciphertext.length >= tagBytes && encryptionKeyId !== "";
  } catch {
    return false;
  }
}

/** The secrets blob of a deployment, as a mapping from the name of each variable to its encrypted value. */
const encryptedSecrets: Format<Bytes> = {
  words: "a mapping from the name of a variable to its encrypted value",
  shape: { type: "object", additionalProperties: { type: "string", pattern: "^[A-Za-z0-9+/]+={0,2}$" } },
  innerPath: ".secrets",
  read(node, path, refuse) {
    if (node.kind !== "map") {
      refuse(path, `must be a mapping, but is ${wordOf(node)}`);
      return utf8("");
    }
    for (const [name, entry] of node.entries) {
      // A plain value here would be sent to and stored by components that must never see it (K7).
      if (entry.node.kind !== "scalar" || !isCiphertext(entry.node.value)) {
        refuse(
          `${path}[${quote(name)}]`,
          "is not what `krane vault encrypt` prints; never put a plain value here",
        );
      }
    }
    return node.entries.size === 0 ? utf8("") : utf8(JSON.stringify({ secrets: jsonOf(node) }));
  },
  write: (value) => Object.fromEntries(readSecretsBlob(value) ?? []),
};

const healthcheckMembers = {
  method: { enum: ["GET", "POST"], description: "How it asks.", default: "GET" },
  path: { type: "string", description: "What it asks for; begins with a slash.", default: "/" },
  intervalSeconds: { type: "integer", description: "The time between two checks." },
  timeoutSeconds: { type: "integer", description: "How long it waits for a response." },
  failureThreshold: { type: "integer", description: "How many checks in a row must fail." },
  initialDelaySeconds: { type: "integer", description: "The time from the start to the first check." },
} as const;

/** The fields that deployments and apps share. */
export const programFields: readonly Field<Plain<ApplyDeployment>>[] = [
  field("namespace", "k8sNamespace", text, "The namespace of its workspace; created if missing.", required),
  field("workspace", "workspaceId", text, "The id of the workspace that owns it.", required),
  field("project", "projectId", text, "The id of the project within the workspace.", required),
  field("environment", "environmentId", text, "The id of the environment within the project.", required),
  field("image", "image", text, "The reference of the container image.", required),
  field(
    "pullSecret",
    "pullSecret",
    text,
    "The Secret in its namespace to pull the image with, instead of the agent's registry login; its name begins with `krane-registry-`.",
  ),
  field("replicas", "replicas", count, "How many pods to keep running; 0 pauses it.", fallbacks.replicas),
  field("cpu", "cpuMillicores", cpu, "The CPU limit of a pod; a quarter of it is requested.", fallbacks.cpu),
  field(
    "memory",
    "memoryMib",
    memory,
    "The memory limit of a pod; a quarter of it is requested.",
    fallbacks.memory,
  ),
  field("port", "port", count, "The port that the program listens on; 8080 by default."),
  field("command", "command", texts, "The program and its arguments, instead of the image's own."),
  field(
    "env",
    "env",
    textsByName,
    "Plain variables of the program, such as LOG_LEVEL. A secret of the same name takes the place of one of these.",
  ),
  field(
    "shutdownSignal",
    "shutdownSignal",
    oneOf(shutdownSignals.slice(1)),
    "The signal that stops it: SIGTERM (the default), SIGINT, SIGQUIT or SIGKILL.",
  ),
  field("buildId", "buildId", text, "The build that made the image; only a label."),
  field(
    "healthcheck",
    "healthcheck",
    jsonObject("a mapping", healthcheckMembers),
    `The health check: ${Object.keys(healthcheckMembers).join(", ")}. Without it, there are no probes.`,
  ),
];

const schema = defineDocument<Plain<ApplyDeployment>, ObjectContent<"deployment", ApplyDeployment>>({
  word: "Deployment",
  kind: "deployment",
  holds: "A customer's program: a ReplicaSet in the namespace of its workspace.",
  fields: [
    field("id", "deploymentId", text, "Its permanent id.", required),
    field(
      "name",
      "k8sName",
      text,
      "The name of its ReplicaSet: a DNS label that starts with a letter.",
      required,
    ),
    ...programFields,
    field(
      "encryptedSecrets",
      "encryptedEnvironmentVariables",
      encryptedSecrets,
      "Variables, each as `krane vault encrypt` prints it for the environment and the name. Without it, the deployment gets the secrets of its environment.",
    ),
  ],
  judge: (content, rules) => problemsOf(parseApplyDeployment(create(ApplyDeploymentSchema, content), rules)),
  documentOf: (content) => ({ kind: "deployment", spec: create(ApplyDeploymentSchema, content) }),
  contentOf: ({ spec }) => spec,
});

export const deploymentDocument: KindDocument<"deployment", ApplyDeployment, DeploymentSpec> = {
  schema,
  belongsTo: ({ environmentId: id, workspaceId, projectId }) => ({ id, workspaceId, projectId }),
  manifestsOf(specs, settings) {
    const portsByPlace = new Map<string, Set<DeploymentSpec["port"]>>();
    for (const spec of specs) {
      const ports = portsByPlace.get(placeOf(spec)) ?? new Set();
      portsByPlace.set(placeOf(spec), ports.add(spec.port));
    }
    return specs.map((spec) => {
      const ports = [spec.port, ...(portsByPlace.get(placeOf(spec)) ?? [])] as const;
      return desiredDeployment(spec, settings, []).map(({ kind, manifest }) =>
        kind === "ingress-policy" ? desiredIngressPolicy(spec, ports, settings.scraperNamespace) : manifest,
      );
    });
  },
};

/** Deployments with the same result share an ingress policy. */
function placeOf({ namespace, environmentId }: DeploymentSpec): string {
  return `${namespace}/${environmentId}`;
}
