// Builds the ReplicaSet of a deployment and the pod that runs the tenant's image. All isolation of the pod is set here
// and nowhere else. No field of a message can weaken it: none leads to a host path, a privilege, another service
// account or another runtime.

import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type {
  Affinity,
  Container,
  EnvVar,
  PodSpec,
  PodTemplateSpec,
  Probe,
} from "kubernetes-types/core/v1.js";
import { orderAnnotations } from "../../model/kept-order.ts";
import {
  annotationKeys,
  components,
  customerNodeClass,
  labelKeys,
  ownLabels,
  poolToleration,
  sentinelNamespace,
} from "../../model/labels.ts";
import { withManifestHash, withTemplateHash } from "../../model/manifest-hash.ts";
import { pullSecretOf } from "../../model/pull-secret.ts";
import { mebibytes, millicores } from "../../model/quantities.ts";
import type { Healthcheck } from "./healthcheck.ts";
import { variables } from "./secrets-blob.ts";
import { type SecretsSettings, tokenPath, tokenVolume, tokenVolumeMount } from "./secrets-token.ts";
import type { DeploymentSpec } from "./spec.ts";

export interface PodSettings {
  readonly secrets: SecretsSettings;
  /** The registry whose images are pulled with the pull secret; absent if not configured. */
  readonly registryHost?: string;
  /** Empty: without a sandbox, for trusted code only. Default: the sandbox. */
  readonly runtimeClass?: RuntimeClass;
}

/** The sandbox between untrusted code and the kernel of the node (K8). */
export const runtimeClassName = "gvisor";
export type RuntimeClass = typeof runtimeClassName | "";
const zoneKey = "topology.kubernetes.io/zone";
export const containerName = "deployment";
/** Requests are the limit divided by this: tenants rarely use all of their limit at once. */
const requestDivisor = 4;

export function deploymentLabels(spec: DeploymentSpec): Record<string, string> {
  return {
    [labelKeys.workspaceId]: spec.workspaceId,
    [labelKeys.projectId]: spec.projectId,
    [labelKeys.environmentId]: spec.environmentId,
    [labelKeys.deploymentId]: spec.deploymentId,
    [labelKeys.buildId]: spec.buildId,
    [labelKeys.inject]: "true",
    ...ownLabels(components.deployment),
  };
}

/** The label that is the same in all versions of a deployment. */
function identityLabels(spec: DeploymentSpec): Record<string, string> {
  return { [labelKeys.deploymentId]: spec.deploymentId };
}

export function desiredPodTemplate(spec: DeploymentSpec, settings: PodSettings): PodTemplateSpec {
  return withTemplateHash<PodTemplateSpec>({
    metadata: {
      generateName: `${spec.name}-`,
      labels: deploymentLabels(spec),
      annotations: { [annotationKeys.deploymentId]: spec.deploymentId },
    },
    spec: desiredPodSpec(spec, settings),
  });
}

function desiredPodSpec(spec: DeploymentSpec, settings: PodSettings): PodSpec {
  const { secrets, registryHost, runtimeClass = runtimeClassName } = settings;
  const pullSecret = pullSecretOf(spec, registryHost);
  return {
    ...(runtimeClass !== "" && { runtimeClassName: runtimeClass }),
    restartPolicy: "Always",
    automountServiceAccountToken: false,
    // Otherwise Kubernetes sets variables for every Service of the namespace, which can hide the tenant's own.
    enableServiceLinks: false,
    tolerations: poolToleration(customerNodeClass),
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: zoneKey,
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: { matchLabels: identityLabels(spec) },
      },
    ],
    affinity: nearSentinels(spec),
    ...(pullSecret !== undefined && { imagePullSecrets: [{ name: pullSecret }] }),
    containers: [desiredContainer(spec, secrets)],
    ...(spec.secretsBlob !== "" && { volumes: [tokenVolume(secrets)] }),
  };
}

/** Traffic reaches a deployment through its sentinels; in the same zone as them it does not cross zones. */
function nearSentinels(spec: DeploymentSpec): Affinity {
  const podAffinityTerm = {
    // By default the term searches only the namespace of the pod, which has no sentinels.
    namespaces: [sentinelNamespace],
    topologyKey: zoneKey,
    labelSelector: {
      matchLabels: {
        [labelKeys.environmentId]: spec.environmentId,
        [labelKeys.component]: components.sentinel,
      },
    },
  };
  return {
    podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm }] },
  };
}

function desiredContainer(spec: DeploymentSpec, secrets: SecretsSettings): Container {
  const probe = spec.healthcheck && desiredProbe(spec.healthcheck, spec.port);
  const stopCommand = preStopCommand(spec);
  return {
    name: containerName,
    image: spec.image.text,
    imagePullPolicy: "IfNotPresent",
    ...(spec.command.length > 0 && { command: [...spec.command] }),
    ports: [{ containerPort: spec.port, name: containerName }],
    env: containerVariables(spec, secrets),
    resources: {
      limits: { cpu: millicores(spec.cpuMillicores), memory: mebibytes(spec.memoryMib) },
      requests: {
        cpu: millicores(requested(spec.cpuMillicores)),
        memory: mebibytes(requested(spec.memoryMib)),
      },
    },
    ...(probe && { livenessProbe: probe, readinessProbe: probe }),
    ...(stopCommand && { lifecycle: { preStop: { exec: { command: stopCommand } } } }),
    ...(spec.secretsBlob !== "" && { volumeMounts: [tokenVolumeMount()] }),
  };
}

function requested(limit: number): number {
  return Math.max(Math.floor(limit / requestDivisor), 1);
}

/**
 * SIGTERM needs no hook, because Kubernetes sends it anyway. SIGKILL from inside a container never reaches its first
 * process, so a hook would only cost time.
 */
function preStopCommand({ shutdownSignal }: DeploymentSpec): string[] | undefined {
  const needsHook = shutdownSignal === "SIGINT" || shutdownSignal === "SIGQUIT";
  return needsHook ? ["kill", `-${shutdownSignal}`, "1"] : undefined;
}

/** The environment variables of the container of a deployment. */
function containerVariables(spec: DeploymentSpec, secrets: SecretsSettings): EnvVar[] {
  const always: readonly EnvVar[] = [
    { name: variables.port, value: String(spec.port) },
    { name: variables.workspaceId, value: spec.workspaceId },
    { name: variables.projectId, value: spec.projectId },
    { name: variables.environmentId, value: spec.environmentId },
    { name: variables.deploymentId, value: spec.deploymentId },
    ...spec.plainVariables,
  ];
  return spec.secretsBlob === "" ? [...always] : [...always, ...secretsVariables(spec.secretsBlob, secrets)];
}

/** What the injector in the container needs to get the blob decrypted. */
function secretsVariables(blob: string, secrets: SecretsSettings): EnvVar[] {
  // Without a configured endpoint, the webhook that adds the injector also sets its endpoint.
  const endpoint =
    secrets.endpoint === undefined ? [] : [{ name: variables.providerEndpoint, value: secrets.endpoint }];
  return [
    { name: variables.encryptedEnvironment, value: blob },
    ...endpoint,
    { name: variables.tokenPath, value: tokenPath },
  ];
}

/** Liveness and readiness use the same probe, as the platform documents. */
function desiredProbe(healthcheck: Healthcheck, port: number): Probe {
  return { ...probeAction(healthcheck, port), ...probeTimes(healthcheck) };
}

/**
 * The kubelet can only send GET. A POST is sent from inside the container by wget, which the image must contain; its
 * arguments do not pass through a shell.
 */
function probeAction({ method, path }: Healthcheck, port: number): Probe {
  if (method === "GET") return { httpGet: { path, port } };
  return { exec: { command: ["wget", "--spider", "--post-data=", "-q", `http://localhost:${port}${path}`] } };
}

/** Zero values are left out, so that Kubernetes uses its defaults. */
function probeTimes(healthcheck: Healthcheck): Probe {
  const { intervalSeconds, timeoutSeconds, failureThreshold, initialDelaySeconds } = healthcheck;
  return {
    ...(initialDelaySeconds > 0 && { initialDelaySeconds }),
    ...(intervalSeconds > 0 && { periodSeconds: intervalSeconds }),
    ...(timeoutSeconds > 0 && { timeoutSeconds }),
    ...(failureThreshold > 0 && { failureThreshold }),
  };
}

const minReadySeconds = 30;

/**
 * The ReplicaSet of a deployment. Changing its template does not replace pods; only new pods use it. So krane can take
 * over the ReplicaSet of an older agent in place without touching its pods.
 */
export function desiredReplicaSet(spec: DeploymentSpec, settings: PodSettings): ReplicaSet {
  const held = spec.isHeld && { [annotationKeys.held]: "isolation" };
  const annotations = { ...orderAnnotations(spec.kept), ...held };
  return withManifestHash<ReplicaSet>({
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: spec.name,
      namespace: spec.namespace,
      labels: deploymentLabels(spec),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: {
      replicas: spec.replicas,
      minReadySeconds,
      // A ReplicaSet's selector is immutable once created, so it holds identity only. If one of its labels varied
      // between versions, the server would reject every later apply of this deployment.
      selector: { matchLabels: identityLabels(spec) },
      template: desiredPodTemplate(spec, settings),
    },
  });
}
