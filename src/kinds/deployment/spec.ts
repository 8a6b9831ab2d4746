// Parses a message of the control plane to a trusted DeploymentSpec, or to the list of its problems. No later code checks
// a name, number or image again: URLs, arguments and manifests may be built from a DeploymentSpec.
import type { ApplyDeployment, DeleteDeployment } from "../../gen/ctrl/v1/deployment_pb.ts";
import { collectProblems, type ParsedMessage, quote, type Refuse } from "../../model/field-problem.ts";
import type { ImageReference } from "../../model/image-reference.ts";
import type { KeptOrder } from "../../model/kept-order.ts";
import {
  type MessageRules,
  parseAmount,
  parseCpu,
  parseId,
  parseImage,
  parseMemory,
  parseName,
  parseReplicas,
} from "../../model/message-fields.ts";
import { isDns1123Label, type OwnNamespaces, refusedWorkloadNamespace } from "../../model/names.ts";
import { ownPullSecretPrefix } from "../../model/pull-secret.ts";
import { type Healthcheck, parseHealthcheck } from "./healthcheck.ts";
import { type PlainVariable, parsePlainVariables } from "./plain-variables.ts";
import { parseSecretsBlob } from "./secrets-blob.ts";

export interface DeploymentSpec extends DeploymentRef {
  readonly workspaceId: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly deploymentId: string;
  /** Empty if unknown. */
  readonly buildId: string;
  readonly image: ImageReference;
  /** The Secret to pull the image with; empty for the agent's own login. */
  readonly pullSecret: string;
  readonly replicas: number;
  readonly cpuMillicores: number;
  readonly memoryMib: number;
  /** Base64; empty without variables. */
  readonly secretsBlob: string;
  /** By name, and ready for the container. */
  readonly plainVariables: readonly PlainVariable[];
  /** Empty for the entrypoint of the image. */
  readonly command: readonly string[];
  readonly port: number;
  /** Empty for the default of Kubernetes. */
  readonly shutdownSignal: ShutdownSignal;
  readonly healthcheck?: Healthcheck;
  /** Absent if it came from the control plane's stream. */
  readonly kept?: KeptOrder;
  /** It has fewer replicas than wanted, because new pods would be less isolated. */
  readonly isHeld?: true;
}

/** Namespace and name of a deployment's ReplicaSet. */
export interface DeploymentRef {
  readonly namespace: string;
  readonly name: string;
}

/** For a deployment without a port. */
export const defaultPort = 8080;

export const shutdownSignals = ["", "SIGTERM", "SIGINT", "SIGQUIT", "SIGKILL"] as const;
export type ShutdownSignal = (typeof shutdownSignals)[number];

export function parseApplyDeployment(
  message: ApplyDeployment,
  rules: MessageRules,
): ParsedMessage<DeploymentSpec> {
  return collectProblems((refuse) => {
    const healthcheck = parseHealthcheck(message.healthcheck, refuse);
    const { namespace, name } = parseRef(message, rules, refuse);
    // No spread here: it makes this four times slower in V8, and a resync runs it thousands of times.
    const spec = {
      namespace,
      name,
      workspaceId: parseId("workspace_id", message.workspaceId, refuse),
      projectId: parseId("project_id", message.projectId, refuse),
      environmentId: parseId("environment_id", message.environmentId, refuse),
      deploymentId: parseId("deployment_id", message.deploymentId, refuse),
      buildId: message.buildId ? parseId("build_id", message.buildId, refuse) : "",
      image: parseImage(message.image, rules.registries, refuse),
      pullSecret: message.pullSecret ? parsePullSecret(message.pullSecret, refuse) : "",
      replicas: parseReplicas(message.replicas, refuse),
      cpuMillicores: parseCpu(message.cpuMillicores, refuse),
      memoryMib: parseMemory(message.memoryMib, refuse),
      secretsBlob: parseSecretsBlob(message.encryptedEnvironmentVariables, refuse),
      plainVariables: parsePlainVariables(message, refuse),
      command: parseCommand(message.command, refuse),
      port: message.port === 0 ? defaultPort : parseAmount("port", message.port, 1, 65_535, refuse),
      shutdownSignal: parseSignal(message.shutdownSignal, refuse),
    };
    return healthcheck === undefined ? spec : { ...spec, healthcheck };
  });
}

/** The rules for names also apply to deletions: krane accepts no orders for namespaces that it does not manage. */
export function parseDeleteDeployment(
  message: DeleteDeployment,
  rules: OwnNamespaces,
): ParsedMessage<DeploymentRef> {
  return collectProblems((refuse) => parseRef(message, rules, refuse));
}

function parseRef(
  message: Pick<ApplyDeployment, "k8sNamespace" | "k8sName">,
  rules: OwnNamespaces,
  refuse: Refuse,
): DeploymentRef {
  const { k8sNamespace: namespace, k8sName } = message;
  if (namespace === "") refuse("k8s_namespace", "is required");
  else if (!isDns1123Label(namespace)) {
    refuse("k8s_namespace", `must be a DNS label of at most 63 characters, but is ${quote(namespace)}`);
  } else {
    const reason = refusedWorkloadNamespace(namespace, rules);
    if (reason !== undefined) refuse("k8s_namespace", `${quote(namespace)} ${reason}`);
  }
  return { namespace, name: parseName("k8s_name", k8sName, 63, refuse) };
}

/** Only names with the prefix are accepted, so that a message cannot make a pod use just any Secret of its namespace. */
function parsePullSecret(name: string, refuse: Refuse): string {
  const own = name.slice(ownPullSecretPrefix.length);
  if (!name.startsWith(ownPullSecretPrefix) || !isDns1123Label(own)) {
    refuse(
      "pull_secret",
      `must be ${ownPullSecretPrefix} and a DNS label of at most 63 characters, but is ${quote(name)}`,
    );
  }
  return name;
}

/** The signal becomes an argument of a program that runs inside the container, so only known names are accepted. */
function parseSignal(text: string, refuse: Refuse): ShutdownSignal {
  const signal = shutdownSignals.find((known) => known === text);
  if (signal === undefined) {
    refuse(
      "shutdown_signal",
      `must be empty or one of ${shutdownSignals.slice(1).join(", ")}, but is ${quote(text)}`,
    );
  }
  return signal ?? "";
}

const field = "command";
const entriesMax = 1_024;
// Together with the variables this stays below the limit of Linux for a new process. Even with every byte escaped, the
// manifest stays below the limits of the API server and its store.
const bytesMax = 128 * 1024;

/** The entrypoint override: a program and its arguments, passed on unchanged, without a shell. */
function parseCommand(entries: readonly string[], refuse: Refuse): readonly string[] {
  if (entries.length > entriesMax) {
    refuse(field, `has ${entries.length} entries, more than ${entriesMax}`);
    return [];
  }
  const bytes = entries.reduce((sum, entry) => sum + Buffer.byteLength(entry) + 1, 0);
  if (bytes > bytesMax) refuse(field, `has ${bytes} bytes, more than ${bytesMax}`);
  if (entries[0] === "") refuse(`${field}[0]`, "must name a program");
  for (const [index, entry] of entries.entries()) {
    // A process argument cannot hold a NUL, and Kubernetes would replace an unpaired surrogate.
    if (/\0|\p{Surrogate}/u.test(entry)) {
      refuse(`${field}[${index}]`, "has a NUL character or is not valid Unicode");
    }
  }
  return [...entries];
}
