// Builds the pod template of a sentinel. It runs the platform's own program, so it is not sandboxed like a tenant's
// pod. It gets Secrets of its namespace by fixed names; no message can name another one.
import type { Container, EnvFromSource, PodTemplateSpec, Probe } from "kubernetes-types/core/v1.js";
import { components, labelKeys, ownLabels, poolToleration, sentinelNodeClass } from "../../model/labels.ts";
import { pullSecretOf } from "../../model/pull-secret.ts";
import { mebibytes, millicores } from "../../model/quantities.ts";
import { gossipPort, identityLabels, sentinelPort } from "./identity.ts";
import type { SentinelSpec } from "./spec.ts";

export interface SentinelPodSettings {
  /** As the sentinel expects it, name and platform joined: "us-east-1.aws". */
  readonly region: string;
  /** The registry whose images are pulled with the pull secret; absent if not configured. */
  readonly registryHost?: string;
}

export const sentinelContainerName = "sentinel";
const healthPath = "/_unkey/internal/health";

export function desiredSentinelTemplate(spec: SentinelSpec, settings: SentinelPodSettings): PodTemplateSpec {
  const { region, registryHost } = settings;
  const pullSecret = pullSecretOf(spec, registryHost);
  return {
    metadata: {
      labels: podLabels(spec),
      // Makes the platform's reloader replace the pods when one of the Secrets below changes.
      annotations: { "reloader.stakater.com/auto": "true" },
    },
    spec: {
      restartPolicy: "Always",
      automountServiceAccountToken: false,
      // Otherwise Kubernetes sets seven variables in every pod for the Service of every sentinel.
      enableServiceLinks: false,
      tolerations: poolToleration(sentinelNodeClass),
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: "topology.kubernetes.io/zone",
          whenUnsatisfiable: "ScheduleAnyway",
          labelSelector: { matchLabels: identityLabels(spec) },
        },
      ],
      ...(pullSecret !== undefined && { imagePullSecrets: [{ name: pullSecret }] }),
      containers: [desiredContainer(spec, region)],
    },
  };
}

/**
 * The project label is on the objects but never was on the pods. Labels here are part of the template, so adding one
 * would restart every sentinel.
 */
function podLabels(spec: SentinelSpec): Record<string, string> {
  return {
    [labelKeys.workspaceId]: spec.workspaceId,
    [labelKeys.environmentId]: spec.environmentId,
    [labelKeys.sentinelId]: spec.sentinelId,
    ...ownLabels(components.sentinel),
  };
}

function desiredContainer(spec: SentinelSpec, region: string): Container {
  return {
    name: sentinelContainerName,
    image: spec.image.text,
    imagePullPolicy: "IfNotPresent",
    args: ["run", "sentinel"],
    envFrom: [secret("database"), optionalSecret("otel"), optionalSecret("redis")],
    env: [{ name: configurationVariable, value: sentinelConfiguration(spec, region) }],
    ports: [
      { name: "sentinel", containerPort: sentinelPort, protocol: "TCP" },
      { name: "gossip-lan", containerPort: gossipPort, protocol: "TCP" },
      { name: "gossip-lan-udp", containerPort: gossipPort, protocol: "UDP" },
    ],
    livenessProbe: healthProbe({
      initialDelaySeconds: 10,
      periodSeconds: 10,
      timeoutSeconds: 5,
      failureThreshold: 3,
    }),
    readinessProbe: healthProbe({
      initialDelaySeconds: 5,
      periodSeconds: 5,
      timeoutSeconds: 3,
      failureThreshold: 2,
    }),
    // All of the memory is requested, because an out-of-memory kill of a sentinel interrupts the traffic of an
    // environment. Half of the CPU is enough: a sentinel short of CPU is only slow for a moment.
    resources: {
      limits: { cpu: millicores(spec.cpuMillicores), memory: mebibytes(spec.memoryMib) },
      requests: {
        cpu: millicores(Math.max(Math.floor(spec.cpuMillicores / 2), 1)),
        memory: mebibytes(spec.memoryMib),
      },
    },
  };
}

function secret(name: string): EnvFromSource {
  return { secretRef: { name } };
}

function optionalSecret(name: string): EnvFromSource {
  return { secretRef: { name, optional: true } };
}

function healthProbe(times: Omit<Probe, "httpGet">): Probe {
  return { httpGet: { path: healthPath, port: sentinelPort }, ...times };
}

export const configurationVariable = "UNKEY_CONFIG_DATA";

/**
 * The configuration of a sentinel: a TOML document in one variable of its container. It holds no addresses or
 * passwords; the sentinel replaces each ${...} from the Secrets of its pod (K7).
 *
 * Written out here rather than by a library: the text is part of the pod template, so a library version that formats
 * the same document differently would restart every sentinel.
 */
export function sentinelConfiguration(spec: SentinelSpec, region: string): string {
  return `sentinel_id = ${tomlString(spec.sentinelId)}
workspace_id = ${tomlString(spec.workspaceId)}
environment_id = ${tomlString(spec.environmentId)}
region = ${tomlString(region)}
http_port = ${sentinelPort}

[observability.logging]
sample_rate = 1.0
slow_threshold = "1s"

[database]
primary = "\${UNKEY_DATABASE_PRIMARY}"
readonly_replica = "\${UNKEY_DATABASE_REPLICA}"

[clickhouse]
url = "\${UNKEY_CLICKHOUSE_URL}"

[redis]
url = "\${UNKEY_REDIS_URL}"
`;
}

/**
 * Quotes a value. Besides the characters that would end the string, the dollar sign is escaped: Kubernetes expands
 * $(...) and the sentinel expands ${...} before the text is parsed as TOML.
 */
function tomlString(text: string): string {
  return `"${text.replaceAll(/["\\$\p{Cc}]/gu, escaped)}"`;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
