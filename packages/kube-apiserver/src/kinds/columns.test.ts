import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ServedResource } from "../resource.ts";
import { builtinResources } from "../served-kinds.ts";

const nowMs = Date.UTC(2026, 0, 1, 1, 0, 0);
const created = "2026-01-01T00:30:00Z";

function row(plural: string, object: unknown, group?: string): string[] {
  const resource = builtinResources.find(
    ({ kind }) => kind.plural === plural && (group === undefined || kind.group === group),
  );
  return (resource as ServedResource).columns.map(({ cell }) => String(cell(object as object, nowMs)));
}

const pod = (status: unknown, metadata: object = {}) => ({
  metadata: { name: "p", creationTimestamp: created, ...metadata },
  spec: { nodeName: "one", containers: [{ name: "c" }] },
  status,
});
const container = (state: unknown, more: object = {}) => ({
  name: "c",
  ready: false,
  restartCount: 0,
  state,
  ...more,
});

describe("kubectl get", () => {
  const stories: [string, unknown, string[]][] = [
    [
      "a ready pod",
      pod({
        phase: "Running",
        podIP: "10.0.0.1",
        containerStatuses: [container({ running: {} }, { ready: true })],
      }),
      ["p", "1/1", "Running", "0", "30m", "10.0.0.1", "one", "<none>", "<none>"],
    ],
    [
      "a pod that crashes",
      pod({
        phase: "Running",
        containerStatuses: [
          container(
            { waiting: { reason: "CrashLoopBackOff" } },
            { restartCount: 4, lastState: { terminated: { finishedAt: "2026-01-01T00:58:00Z" } } },
          ),
        ],
      }),
      ["p", "0/1", "CrashLoopBackOff", "4 (2m ago)", "30m", "<none>", "one", "<none>", "<none>"],
    ],
    [
      "a pod that ends",
      pod({ phase: "Running" }, { deletionTimestamp: created }),
      ["p", "0/1", "Terminating", "0", "30m", "<none>", "one", "<none>", "<none>"],
    ],
    [
      "a container that ended without a reason",
      pod({ phase: "Failed", containerStatuses: [container({ terminated: { exitCode: 3 } })] }),
      ["p", "0/1", "ExitCode:3", "0", "30m", "<none>", "one", "<none>", "<none>"],
    ],
    [
      "an init container that runs",
      pod({ phase: "Pending", initContainerStatuses: [container({ running: {} })] }),
      ["p", "0/1", "Init:0/0", "0", "30m", "<none>", "one", "<none>", "<none>"],
    ],
  ];
  for (const [what, object, expected] of stories) {
    it(`shows ${what}`, () => assert.deepEqual(row("pods", object), expected));
  }

  const template = {
    spec: {
      containers: [
        { name: "a", image: "i:1" },
        { name: "b", image: "j:2" },
      ],
    },
  };
  const selector = {
    matchLabels: { x: "y" },
    matchExpressions: [{ key: "k", operator: "In", values: ["2", "1"] }],
  };

  it("counts the pods of workloads", () => {
    const metadata = { name: "w", creationTimestamp: created };
    const spec = { replicas: 3, selector, template };
    const status = { replicas: 3, readyReplicas: 2, updatedReplicas: 3, availableReplicas: 1 };
    const tail = ["a,b", "i:1,j:2", "k in (1,2),x=y"];
    assert.deepEqual(row("replicasets", { metadata, spec, status }), ["w", "3", "3", "2", "30m", ...tail]);
    assert.deepEqual(row("deployments", { metadata, spec, status }), ["w", "2/3", "3", "1", "30m", ...tail]);
  });

  it("shows the ports of services, and the limits of budgets", () => {
    const metadata = { name: "s", creationTimestamp: created };
    const ports = [
      { port: 80, protocol: "TCP" },
      { port: 53, nodePort: 30_000, protocol: "UDP" },
    ];
    const spec = { type: "NodePort", clusterIP: "10.96.0.1", ports, selector: { b: "2", a: "1" } };
    const service = row("services", { metadata, spec });
    assert.deepEqual(service, [
      "s",
      "NodePort",
      "10.96.0.1",
      "<none>",
      "80/TCP,53:30000/UDP",
      "30m",
      "a=1,b=2",
    ]);
    const budget = { metadata, spec: { maxUnavailable: 1 }, status: { disruptionsAllowed: 2 } };
    assert.deepEqual(row("poddisruptionbudgets", budget), ["s", "N/A", "1", "2", "30m"]);
  });

  it("shows a node's status, role and address", () => {
    const node = {
      metadata: { name: "n", creationTimestamp: created, labels: { "node-role.kubernetes.io/worker": "" } },
      spec: { unschedulable: true },
      status: {
        conditions: [{ type: "Ready", status: "True" }],
        addresses: [{ type: "InternalIP", address: "1.2.3.4" }],
      },
    };
    const cells = row("nodes", node);
    assert.deepEqual(cells.slice(0, 6), ["n", "Ready,SchedulingDisabled", "worker", "30m", "", "1.2.3.4"]);
  });

  it("shows the same event in both API versions", () => {
    const core = {
      metadata: { name: "e" },
      type: "Normal",
      reason: "Pulled",
      message: "done",
      involvedObject: { kind: "Pod", name: "p" },
      reportingComponent: "kubelet",
      firstTimestamp: null,
      eventTime: created,
    };
    const {
      message: note,
      involvedObject: regarding,
      reportingComponent: reportingController,
      ...rest
    } = core;
    const expected = ["30m", "Normal", "Pulled", "pod/p", "", "kubelet", "done", "30m", "1", "e"];
    assert.deepEqual(row("events", core, ""), expected);
    assert.deepEqual(
      row("events", { ...rest, note, regarding, reportingController }, "events.k8s.io"),
      expected,
    );
  });
});
