// Field by field what the agent that krane replaces leaves in clusters, for the sentinel of applySentinel().
import type { Deployment } from "kubernetes-types/apps/v1.js";
import type { Service } from "kubernetes-types/core/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";

const ids = {
  "unkey.com/workspace.id": "ws_1a2B3c4D",
  "unkey.com/project.id": "proj_1a2B3c4D",
  "unkey.com/environment.id": "env_1a2B3c4D",
  "unkey.com/sentinel.id": "se_1a2B3c4D",
};
const managedLabels = {
  ...ids,
  "app.kubernetes.io/managed-by": "krane",
  "app.kubernetes.io/component": "sentinel",
};
const gossipLabels = { ...ids, "app.kubernetes.io/component": "gossip-lan" };
const identity = { "unkey.com/sentinel.id": "se_1a2B3c4D" };
const peers = { "unkey.com/environment.id": "env_1a2B3c4D", "app.kubernetes.io/component": "sentinel" };

export function deploymentOfOlderAgent(configuration = 'sentinel_id = "se_1a2B3c4D"\n'): Deployment {
  const { "unkey.com/project.id": _, ...podIds } = ids;
  const httpGet = { path: "/_unkey/internal/health", port: 8040 };
  const container = {
    name: "sentinel",
    image: "registry.example/platform/sentinel:1",
    imagePullPolicy: "IfNotPresent",
    args: ["run", "sentinel"],
    envFrom: [
      { secretRef: { name: "database" } },
      { secretRef: { name: "otel", optional: true } },
      { secretRef: { name: "redis", optional: true } },
    ],
    env: [{ name: "UNKEY_CONFIG_DATA", value: configuration }],
    ports: [
      { containerPort: 8040, name: "sentinel" },
      { containerPort: 7946, name: "gossip-lan", protocol: "TCP" },
      { containerPort: 7946, name: "gossip-lan-udp", protocol: "UDP" },
    ],
    livenessProbe: {
      httpGet,
      initialDelaySeconds: 10,
      periodSeconds: 10,
      timeoutSeconds: 5,
      failureThreshold: 3,
    },
    readinessProbe: {
      httpGet,
      initialDelaySeconds: 5,
      periodSeconds: 5,
      timeoutSeconds: 3,
      failureThreshold: 2,
    },
  };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "gate", namespace: "sentinel", labels: managedLabels },
    spec: {
      replicas: 1,
      minReadySeconds: 30,
      selector: { matchLabels: identity },
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: {
        metadata: {
          labels: { ...podIds, "app.kubernetes.io/component": "sentinel" },
          annotations: { "reloader.stakater.com/auto": "true" },
        },
        spec: {
          restartPolicy: "Always",
          tolerations: [{ key: "node-class", operator: "Equal", value: "sentinel", effect: "NoSchedule" }],
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: "topology.kubernetes.io/zone",
              whenUnsatisfiable: "ScheduleAnyway",
              labelSelector: { matchLabels: identity },
            },
          ],
          containers: [container],
        },
      },
    },
  };
}

/** `uid`: of the live Deployment. */
export function companionsOfOlderAgent(uid: string) {
  const ownerReferences = [{ apiVersion: "apps/v1", kind: "Deployment", name: "gate", uid }];
  const owned = { name: "gate", namespace: "sentinel", labels: managedLabels, ownerReferences };
  const gossip = { name: "gate-gossip-lan", namespace: "sentinel", labels: gossipLabels };
  const service: Service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: owned,
    spec: {
      type: "ClusterIP",
      selector: identity,
      ports: [{ port: 8040, targetPort: 8040, protocol: "TCP" }],
    },
  };
  const budget: PodDisruptionBudget = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: owned,
    spec: { maxUnavailable: 1, selector: { matchLabels: identity } },
  };
  const gossipService: Service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: gossip,
    spec: {
      clusterIP: "None",
      selector: peers,
      ports: [
        { name: "gossip-lan", port: 7946, targetPort: 7946, protocol: "TCP" },
        { name: "gossip-lan-udp", port: 7946, targetPort: 7946, protocol: "UDP" },
      ],
    },
  };
  const ports = ["TCP", "UDP"].map((protocol) => ({ port: "7946", protocol }));
  const gossipPolicy = {
    apiVersion: "cilium.io/v2",
    kind: "CiliumNetworkPolicy",
    metadata: gossip,
    spec: {
      endpointSelector: { matchLabels: peers },
      ingress: [{ fromEndpoints: [{ matchLabels: peers }], toPorts: [{ ports }] }],
    },
  };
  return { service, budget, gossipService, gossipPolicy };
}
