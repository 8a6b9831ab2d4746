// What the agent that krane replaces leaves in clusters.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { ApplyDeployment } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { applyDeployment, utf8 } from "./deployment-messages.ts";

/** Field by field what the original agent applied, for the deployment of applyDeployment() with two replicas. */
export function replicaSetOfOlderAgent(namespace: string): ReplicaSet {
  const labels = {
    "unkey.com/workspace.id": "ws_1a2B3c4D",
    "unkey.com/project.id": "proj_1a2B3c4D",
    "unkey.com/environment.id": "env_1a2B3c4D",
    "unkey.com/deployment.id": "d_1a2B3c4D",
    "unkey.com/build.id": "",
    "app.kubernetes.io/managed-by": "krane",
    "app.kubernetes.io/component": "deployment",
    "unkey.com/inject": "true",
  };
  const matchLabels = { "unkey.com/deployment.id": "d_1a2B3c4D" };
  const sentinels = { "unkey.com/environment.id": "env_1a2B3c4D", "app.kubernetes.io/component": "sentinel" };
  const topologyKey = "topology.kubernetes.io/zone";
  const podAffinityTerm = { topologyKey, labelSelector: { matchLabels: sentinels } };
  const env = [
    { name: "PORT", value: "8080" },
    { name: "UNKEY_WORKSPACE_ID", value: "ws_1a2B3c4D" },
    { name: "UNKEY_PROJECT_ID", value: "proj_1a2B3c4D" },
    { name: "UNKEY_ENVIRONMENT_ID", value: "env_1a2B3c4D" },
    { name: "UNKEY_DEPLOYMENT_ID", value: "d_1a2B3c4D" },
    { name: "UNKEY_ENCRYPTED_ENV", value: "e30=" },
  ];
  const probe = {
    httpGet: { path: "/health", port: 8080 },
    periodSeconds: 10,
    timeoutSeconds: 5,
    failureThreshold: 3,
  };
  const container = {
    name: "deployment",
    image: "registry.example/acme/web:1",
    imagePullPolicy: "IfNotPresent",
    command: ["./server"],
    ports: [{ containerPort: 8080, name: "deployment" }],
    env,
    resources: { limits: { cpu: "250m", memory: "256Mi" }, requests: { cpu: "62m", memory: "64Mi" } },
    livenessProbe: probe,
    readinessProbe: probe,
    lifecycle: { preStop: { exec: { command: ["kill", "-SIGINT", "1"] } } },
  };
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name: "web", namespace, labels },
    spec: {
      replicas: 2,
      minReadySeconds: 30,
      selector: { matchLabels },
      template: {
        metadata: { generateName: "web-", labels },
        spec: {
          runtimeClassName: "gvisor",
          restartPolicy: "Always",
          tolerations: [
            { key: "karpenter.sh/nodepool", operator: "Equal", value: "untrusted", effect: "NoSchedule" },
          ],
          topologySpreadConstraints: [
            { maxSkew: 1, topologyKey, whenUnsatisfiable: "ScheduleAnyway", labelSelector: { matchLabels } },
          ],
          affinity: {
            podAffinity: {
              preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm }],
            },
          },
          containers: [container],
        },
      },
    },
  };
}

/** The message that it was made from. */
export function messageOfOlderAgent(overrides: Parameters<typeof applyDeployment>[0] = {}): ApplyDeployment {
  const healthcheck = {
    method: "GET",
    path: "/health",
    intervalSeconds: 10,
    timeoutSeconds: 5,
    failureThreshold: 3,
  };
  return applyDeployment({
    replicas: 2,
    port: 8080,
    command: ["./server"],
    shutdownSignal: "SIGINT",
    healthcheck: utf8(JSON.stringify(healthcheck)),
    encryptedEnvironmentVariables: utf8("{}"),
    ...overrides,
  });
}
