// The rule in docs/protocol.md for the pods in a status report. Each row is made from pods that fit it; most of them fit a
// later row as well.
import { test } from "node:test";
import type { Pod, PodStatus } from "kubernetes-types/core/v1.js";
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { observeDeployment } from "../../src/kinds/deployment/observed.ts";
import { desiredReplicaSet } from "../../src/kinds/deployment/pod-template.ts";
import { projectPod, projectReplicaSet } from "../../src/kinds/deployment/projections.ts";
import { deploymentSpec } from "../support/deployment-messages.ts";
import { assertGoldenSection } from "../support/golden-section.ts";
import { testSeal } from "../support/test-seal.ts";

const replicaSet = projectReplicaSet(
  {
    ...desiredReplicaSet(deploymentSpec(), { secrets: { audience: "krane" } }),
    metadata: { name: "web", namespace: "acme", uid: "rs-1" },
  },
  testSeal,
);
const podName = "web-x7k2p";
const ready = { type: "ContainersReady", status: "True" };
const running: PodStatus = { phase: "Running", podIP: "10.1.2.3", conditions: [ready] };
const unready = { ...running, conditions: [{ type: "ContainersReady", status: "False" }] };
const notReady = (reason?: string): PodStatus => ({
  ...running,
  conditions: [ready, { type: "Ready", status: "False", ...(reason !== undefined && { reason }) }],
});
const waiting = (reason: string, status: PodStatus): PodStatus => ({
  ...status,
  containerStatuses: [
    {
      name: "deployment",
      image: "",
      imageID: "",
      ready: false,
      restartCount: 0,
      state: { waiting: { reason } },
    },
  ],
});
const withoutAddress: PodStatus = { phase: "Pending" };

function cellOf(status: PodStatus, deletionTimestamp?: string): string {
  const ownerReferences = [
    { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "rs-1", controller: true },
  ];
  const metadata = { name: podName, namespace: "acme", ownerReferences };
  const pod: Pod = { metadata: { ...metadata, ...(deletionTimestamp && { deletionTimestamp }) }, status };
  const { update } = observeDeployment(replicaSet, [{ ...projectPod(pod), name: podName }]);
  const [instance] = update.instances;
  if (instance === undefined) return "missing";
  const named = instance.address.startsWith(podName) ? ", with the pod's name in place of an IP" : "";
  const word = Object.entries(Status).find(([, status]) => status === instance.status)?.[0];
  return `\`${word}\`${named}`;
}

const failures = [
  "CrashLoopBackOff",
  "ImagePullBackOff",
  "ErrImagePull",
  "InvalidImageName",
  "CreateContainerConfigError",
];
const waits = failures.map((reason) => `\`${reason}\``).join(", ");

/** The pod, and statuses that fit. */
const rows: readonly (readonly [string, readonly string[]])[] = [
  [
    "is being deleted, has failed or has succeeded (Kubernetes replaces it)",
    [
      cellOf(running, "2026-01-01T00:00:00Z"),
      cellOf(waiting("CrashLoopBackOff", running), "2026-01-01T00:00:00Z"),
      cellOf({ ...running, phase: "Failed" }),
      cellOf(waiting("CrashLoopBackOff", { ...running, phase: "Failed" })),
      cellOf({ ...running, phase: "Succeeded" }),
    ],
  ],
  [
    `has no IP, and a container that waits in ${waits.replace(/, (?!.*, )/, " or ")}`,
    failures.map((reason) => cellOf(waiting(reason, withoutAddress))),
  ],
  [
    "has an IP, and such a container",
    failures.flatMap((reason) =>
      [running, unready, notReady()].map((status) => cellOf(waiting(reason, status))),
    ),
  ],
  ["has no IP", [cellOf(withoutAddress), cellOf({ phase: "Running", conditions: [ready] }), cellOf({})]],
  [
    "is not ready although all its containers are: its node does not answer (`krane why` says so), or a readiness gate is closed",
    [cellOf(notReady()), cellOf(notReady("ReadinessGatesNotReady"))],
  ],
  ["runs, and all its containers are ready", [cellOf(running)]],
  [
    "anything else: it is starting, or not ready",
    [
      cellOf(unready),
      cellOf({ ...running, conditions: [] }),
      cellOf({ ...running, phase: "Pending" }),
      cellOf({ ...running, phase: "Unknown" }),
      cellOf(waiting("ContainerCreating", { ...unready, phase: "Pending" })),
      cellOf(waiting("RunContainerError", unready)),
    ],
  ],
];

test("the rule for pods in status reports is that of the code", () => {
  const lines = rows.map(([pod, cells]) => `| ${pod} | ${[...new Set(cells)].join(" / ")} |`);
  assertGoldenSection(
    "docs/protocol.md",
    "pods",
    ["| Pod | In the report |", "|---|---|", ...lines].join("\n"),
  );
});
