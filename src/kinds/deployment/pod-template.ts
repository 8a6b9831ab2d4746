// The pod that runs a tenant's image. Everything that isolates it is written here and nowhere else, and
// nothing in a message can ask for less: there is no way from a field to a host path, a privilege, another
// service account or another runtime.
import type { Affinity, Container, PodSpec, PodTemplateSpec } from "kubernetes-types/core/v1.js";
import {
  annotationKeys,
  components,
  customerNodeClass,
  labelKeys,
  ownLabels,
  sentinelNamespace,
} from "../../model/labels.ts";
import { withTemplateHash } from "../../model/manifest-hash.ts";
import { isImageOfRegistry, pullSecretName } from "../../model/pull-secret.ts";
import { mebibytes, millicores } from "../../model/quantities.ts";
import { containerVariables } from "./environment.ts";
import { desiredProbe } from "./probes.ts";
import { type SecretsSettings, tokenVolume, tokenVolumeMount } from "./secrets-token.ts";
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
