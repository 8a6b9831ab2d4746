// The pod that runs a tenant's image. Everything that isolates it is written here and nowhere else, and
// nothing in a message can ask for less: there is no way from a field to a host path, a privilege, another
// service account or another runtime.

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
  sentinelNamespace,
} from "../../model/labels.ts";
import { withManifestHash, withTemplateHash } from "../../model/manifest-hash.ts";
import { isImageOfRegistry, pullSecretName } from "../../model/pull-secret.ts";
import { mebibytes, millicores } from "../../model/quantities.ts";
import type { Healthcheck } from "./healthcheck.ts";
import { variables } from "./secrets-blob.ts";
import { type SecretsSettings, tokenPath, tokenVolume, tokenVolumeMount } from "./secrets-token.ts";
import type { DeploymentSpec } from "./spec.ts";

export interface PodSettings {
  readonly secrets: SecretsSettings;
  /** The registry whose images are pulled with the pull secret; absent when none is configured. */
  readonly registryHost?: string;
}

/** The sandbox that stands between untrusted code and the kernel of the node (K8). */
export const runtimeClassName = "gvisor";
const zoneKey = "topology.kubernetes.io/zone";
const containerName = "deployment";
/** What is requested is this part of the limit: tenants seldom use all of theirs at once. */
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

/** The label that never varies between versions of one deployment. */
export function identityLabels(spec: DeploymentSpec): Record<string, string> {
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

function desiredPodSpec(spec: DeploymentSpec, { secrets, registryHost }: PodSettings): PodSpec {
  const pullsWithSecret = registryHost !== undefined && isImageOfRegistry(spec.image.registry, registryHost);
  return {
    runtimeClassName,
    restartPolicy: "Always",
    automountServiceAccountToken: false,
    // Kubernetes would put the address of every service of the namespace into the environment, and
    // a name there can hide one of the tenant's own.
    enableServiceLinks: false,
    tolerations: [
      { key: "karpenter.sh/nodepool", operator: "Equal", value: customerNodeClass, effect: "NoSchedule" },
    ],
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: zoneKey,
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: { matchLabels: identityLabels(spec) },
      },
    ],
    affinity: nearSentinels(spec),
    ...(pullsWithSecret && { imagePullSecrets: [{ name: pullSecretName }] }),
    containers: [desiredContainer(spec, secrets)],
    ...(spec.secretsBlob !== "" && { volumes: [tokenVolume(secrets)] }),
  };
}

/** Traffic reaches a deployment through its sentinels; in one zone with them it crosses no zone border. */
function nearSentinels(spec: DeploymentSpec): Affinity {
  const podAffinityTerm = {
    // Without it the term would look for sentinels in the namespace of the pod, where there are none.
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

// SIGTERM is what Kubernetes sends anyway. SIGKILL from inside a container never reaches its first
// process; the hook would do nothing but cost time.
function preStopCommand({ shutdownSignal }: DeploymentSpec): string[] | undefined {
  const needsHook = shutdownSignal === "SIGINT" || shutdownSignal === "SIGQUIT";
  return needsHook ? ["kill", `-${shutdownSignal}`, "1"] : undefined;
}

// The environment that krane gives the container of a deployment.

function containerVariables(spec: DeploymentSpec, secrets: SecretsSettings): EnvVar[] {
  const always = [
    { name: variables.port, value: String(spec.port) },
    { name: variables.workspaceId, value: spec.workspaceId },
    { name: variables.projectId, value: spec.projectId },
    { name: variables.environmentId, value: spec.environmentId },
    { name: variables.deploymentId, value: spec.deploymentId },
  ];
  return spec.secretsBlob === "" ? always : [...always, ...secretsVariables(spec.secretsBlob, secrets)];
}

/** What the injector in the container needs to have the blob decrypted. */
function secretsVariables(blob: string, secrets: SecretsSettings): EnvVar[] {
  // Without an endpoint of ours, the webhook that brings the injector also tells it where to ask.
  const endpoint =
    secrets.endpoint === undefined ? [] : [{ name: variables.providerEndpoint, value: secrets.endpoint }];
  return [
    { name: variables.encryptedEnvironment, value: blob },
    ...endpoint,
    { name: variables.tokenPath, value: tokenPath },
  ];
}

// How a healthcheck becomes a probe. Liveness and readiness get the same one, as the platform documents.

function desiredProbe(healthcheck: Healthcheck, port: number): Probe {
  return { ...probeAction(healthcheck, port), ...probeTimes(healthcheck) };
}

// The kubelet can only GET. A POST is sent from inside the container, by a wget that the image has to
// bring along; the arguments reach it without a shell in between.
function probeAction({ method, path }: Healthcheck, port: number): Probe {
  if (method === "GET") return { httpGet: { path, port } };
  return { exec: { command: ["wget", "--spider", "--post-data=", "-q", `http://localhost:${port}${path}`] } };
}

/** What is 0 is left out, and Kubernetes fills in its default. */
function probeTimes(healthcheck: Healthcheck): Probe {
  const { intervalSeconds, timeoutSeconds, failureThreshold, initialDelaySeconds } = healthcheck;
  return {
    ...(initialDelaySeconds > 0 && { initialDelaySeconds }),
    ...(intervalSeconds > 0 && { periodSeconds: intervalSeconds }),
    ...(timeoutSeconds > 0 && { timeoutSeconds }),
    ...(failureThreshold > 0 && { failureThreshold }),
  };
}

// A deployment in Kubernetes: one ReplicaSet. A change of its template makes no new pods; it is what
// later pods are made from. So an older agent's ReplicaSet is taken over in place, its pods untouched.

const minReadySeconds = 30;

export function desiredReplicaSet(spec: DeploymentSpec, settings: PodSettings): ReplicaSet {
  const annotations = orderAnnotations(spec.kept);
  return withManifestHash<ReplicaSet>({
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: spec.name,
      namespace: spec.namespace,
      labels: deploymentLabels(spec),
      ...(annotations && { annotations }),
    },
    spec: {
      replicas: spec.replicas,
      minReadySeconds,
      // A ReplicaSet's selector cannot be changed once created, so it holds identity only. One label
      // that varies between versions and every later apply of this deployment would be refused.
      selector: { matchLabels: identityLabels(spec) },
      template: desiredPodTemplate(spec, settings),
    },
  });
}
