// Objects of realistic size: those of a deployment with a few variables. Responses include what the API server adds,
// mostly managedFields, which are most of their bytes.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod, PodTemplateSpec } from "kubernetes-types/core/v1.js";
import { annotationKeys, components, labelKeys, ownLabels } from "../src/model/labels.ts";

const podsPerDeployment = 4;
const deploymentsPerNamespace = 25;
const createdAt = "2026-01-02T03:04:05Z";

/** Eight of them, as environment variables, make a manifest of 2.2 KB. */
const variables = Array.from({ length: 8 }, (_, index) => ({
  name: `APPLICATION_SETTING_${index}`,
  value: `https://service-${index}.internal.example/path`,
}));

function hex(seed: number, length: number): string {
  let digits = "";
  for (let part = 0; digits.length < length; part++) {
    digits += (Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(part + 7, 0x85ebca6b)).toString(16).slice(-7);
  }
  return digits.slice(0, length);
}

function uidOf(seed: number): string {
  return [
    hex(seed, 8),
    hex(seed + 1, 4),
    `4${hex(seed + 2, 3)}`,
    `8${hex(seed + 3, 3)}`,
    hex(seed + 4, 12),
  ].join("-");
}

function labelsOf(deployment: number): Record<string, string> {
  return {
    [labelKeys.workspaceId]: `ws_${hex(deployment >> 5, 16)}`,
    [labelKeys.projectId]: `proj_${hex(deployment >> 3, 16)}`,
    [labelKeys.environmentId]: `env_${hex(deployment >> 2, 16)}`,
    [labelKeys.deploymentId]: `d_${hex(deployment, 16)}`,
    ...ownLabels(components.deployment),
  };
}

function templateOf(deployment: number): PodTemplateSpec {
  const labels = labelsOf(deployment);
  return {
    metadata: {
      labels,
      annotations: {
        [annotationKeys.deploymentId]: labels[labelKeys.deploymentId] ?? "",
        [annotationKeys.templateHash]: hex(deployment, 16),
      },
    },
    spec: {
      runtimeClassName: "gvisor",
      restartPolicy: "Always",
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      tolerations: [
        { key: "karpenter.sh/nodepool", operator: "Equal", value: "untrusted", effect: "NoSchedule" },
      ],
      containers: [
        {
          name: "deployment",
          image: `registry.example/tenant/application@sha256:${hex(deployment, 64)}`,
          ports: [{ containerPort: 8080, name: "http", protocol: "TCP" }],
          env: variables,
          resources: {
            limits: { cpu: "250m", memory: "256Mi" },
            requests: { cpu: "63m", memory: "64Mi" },
          },
        },
      ],
    },
  };
}

/** 2.2 KB; no replicas, so that a real cluster creates no pods for it. */
export function sampleReplicaSet(namespace: string, name: string): ReplicaSet {
  const labels = labelsOf(1);
  const deploymentId = { [labelKeys.deploymentId]: labels[labelKeys.deploymentId] ?? "" };
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name, namespace, labels, annotations: { [annotationKeys.manifestHash]: hex(1, 16) } },
    spec: {
      replicas: 0,
      minReadySeconds: 30,
      selector: { matchLabels: deploymentId },
      template: templateOf(1),
    },
  };
}

/** The API server's response to applying one: 4 KB. */
export function sampleReplicaSetAnswer(namespace: string, name: string): ReplicaSet {
  const applied = sampleReplicaSet(namespace, name);
  const { metadata, spec } = applied;
  return {
    ...applied,
    metadata: {
      ...metadata,
      uid: uidOf(1),
      resourceVersion: "1234567",
      generation: 1,
      creationTimestamp: createdAt,
      managedFields: [managedBy("krane", "apps/v1", { metadata, spec })],
    },
    status: { replicas: 0, observedGeneration: 1 },
  } as ReplicaSet;
}

/** 5 KB, running. There are 4 pods per deployment and 25 deployments per namespace. */
export function samplePod(index: number): Pod {
  const deployment = Math.floor(index / podsPerDeployment);
  const { metadata, spec } = templateOf(deployment);
  // Deployment names have twelve characters, and Kubernetes adds six for a pod.
  const owner = `d${hex(deployment, 11)}`;
  const status = podStatus(index);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...metadata,
      name: `${owner}-${hex(index, 5)}`,
      generateName: `${owner}-`,
      namespace: `w${hex(Math.floor(deployment / deploymentsPerNamespace), 11)}`,
      uid: uidOf(index),
      resourceVersion: String(1_000_000 + index),
      creationTimestamp: createdAt,
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: "ReplicaSet",
          name: owner,
          uid: uidOf(1_000_000 + deployment),
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: [
        managedBy("kube-controller-manager", "v1", { metadata, spec }),
        managedBy("kubelet", "v1", { status }),
      ],
    },
    spec: {
      ...spec,
      nodeName: `ip-10-0-${index % 256}-${index % 199}.region.compute.internal`,
      serviceAccountName: "default",
      schedulerName: "default-scheduler",
      containers: spec?.containers ?? [],
    },
    status,
  } as Pod;
}

function podStatus(index: number): Pod["status"] {
  const ip = `10.${(index >> 16) % 256}.${(index >> 8) % 256}.${index % 256}`;
  return {
    phase: "Running",
    podIP: ip,
    podIPs: [{ ip }],
    hostIP: `10.0.${index % 256}.1`,
    startTime: createdAt,
    qosClass: "Burstable",
    conditions: ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"].map(
      (type) => ({ type, status: "True", lastTransitionTime: createdAt }),
    ),
    containerStatuses: [
      {
        name: "deployment",
        ready: true,
        started: true,
        restartCount: 0,
        image: "registry.example/tenant/application",
        imageID: `registry.example/tenant/application@sha256:${hex(index, 64)}`,
        containerID: `containerd://${hex(index, 64)}`,
        state: { running: { startedAt: createdAt } },
      },
    ],
  };
}

/** An entry of managedFields for everything in `fields`, in the API server's form. */
function managedBy(manager: string, apiVersion: string, fields: object) {
  return {
    manager,
    operation: "Apply",
    apiVersion,
    time: createdAt,
    fieldsType: "FieldsV1",
    fieldsV1: ownedFields(fields),
  };
}

function ownedFields(value: unknown): Record<string, unknown> {
  if (Array.isArray(value)) {
    return Object.fromEntries(
      value.map((item, index) => [`k:{"name":"${item?.name ?? item?.type ?? index}"}`, ownedFields(item)]),
    );
  }
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [`f:${name}`, ownedFields(member)]),
  );
}
