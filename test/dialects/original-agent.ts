// The original's agent as its control plane sees it, from the tables of its behaviour: the headers and fields that it
// sends, one message of a stream at a time, a cursor per stream that moves with each message that was handled and never
// goes back, and a resync that deletes what is `not_found`. It has a cluster of names, and no Kubernetes.
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { ClusterService } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { Health } from "../../src/gen/ctrl/v1/sentinel_pb.ts";

export const streamKinds = ["deployment", "sentinel", "policy"] as const;
export type StreamKind = (typeof streamKinds)[number];

/** What it was told to have, by name. */
interface Held {
  readonly id: string;
  readonly replicas: number;
}

export class OriginalAgent {
  readonly region: string;
  readonly cursors: Record<StreamKind, bigint> = { deployment: 0n, sentinel: 0n, policy: 0n };
  readonly cluster: Record<StreamKind, Map<string, Held>> = {
    deployment: new Map(),
    sentinel: new Map(),
    policy: new Map(),
  };
  /** The names that it fails to apply. */
  readonly broken = new Set<string>();
  /** What the control plane answered to calls that failed. */
  readonly failures: string[] = [];
  private readonly client;

  constructor(region: string, transport: Transport) {
    this.region = region;
    this.client = createClient(ClusterService, transport);
  }

  /** Runs one stream until it ends, its message fails or the signal aborts. */
  async watch(kind: StreamKind, signal: AbortSignal): Promise<void> {
    const request = { region: this.region, versionLastSeen: this.cursors[kind] };
    const rpc = {
      deployment: () => this.client.watchDeployments(request, { signal }),
      sentinel: () => this.client.watchSentinels(request, { signal }),
      policy: () => this.client.watchCiliumNetworkPolicies(request, { signal }),
    }[kind];
    try {
      for await (const { state, version } of rpc()) {
        if (state.case === "apply") await this.apply(kind, state.value, idOf(state.value));
        if (state.case === "delete") await this.delete(kind, state.value.k8sName);
        if (version > this.cursors[kind]) this.cursors[kind] = version;
      }
    } catch (error) {
      if (!signal.aborted) this.failures.push(codeOf(error));
    }
  }

  /** One pass: an object that the control plane does not know is deleted. */
  async resync(): Promise<void> {
    for (const kind of streamKinds)
      for (const [name, { id }] of this.cluster[kind]) {
        try {
          const { state } = await this.ask(kind, id);
          if (state.case === "delete") await this.delete(kind, name);
        } catch (error) {
          if (codeOf(error) === "not_found") await this.delete(kind, name);
          else this.failures.push(codeOf(error));
        }
      }
  }

  reportPods(name: string, running: number): Promise<unknown> {
    const instances = Array.from({ length: running }, (_, index) => ({
      k8sName: `${name}-${index}`,
      address: `10-0-0-${index}.ws-one.pod.cluster.local:8080`,
      // It reads the limits of the pod, which are never set.
      cpuMillicores: 0n,
      memoryMib: 0n,
      status: Status.RUNNING,
    }));
    return this.client.reportDeploymentStatus({
      change: { case: "update", value: { k8sName: name, instances } },
    });
  }

  reportSentinel(k8sName: string, availableReplicas: number): Promise<unknown> {
    const health = availableReplicas > 0 ? Health.HEALTHY : Health.UNHEALTHY;
    return this.client.reportSentinelStatus({ k8sName, availableReplicas, health });
  }

  ask(kind: StreamKind, id: string) {
    switch (kind) {
      case "deployment":
        return this.client.getDesiredDeploymentState({ deploymentId: id });
      case "sentinel":
        return this.client.getDesiredSentinelState({ sentinelId: id });
      case "policy":
        return this.client.getDesiredCiliumNetworkPolicyState({ ciliumNetworkPolicyId: id });
    }
  }

  private async apply(kind: StreamKind, spec: Applied, id: string): Promise<void> {
    const { k8sName, replicas = 0 } = spec;
    if (this.broken.has(k8sName)) throw new Error(`cannot apply ${k8sName}`);
    this.cluster[kind].set(k8sName, { id, replicas });
    if (kind === "deployment") await this.reportPods(k8sName, 0);
    if (kind === "sentinel") await this.reportSentinel(k8sName, 0);
  }

  private async delete(kind: StreamKind, k8sName: string): Promise<void> {
    this.cluster[kind].delete(k8sName);
    if (kind === "deployment")
      await this.client.reportDeploymentStatus({ change: { case: "delete", value: { k8sName } } });
    if (kind === "sentinel") await this.reportSentinel(k8sName, 0);
  }
}

interface Applied {
  readonly k8sName: string;
  readonly replicas?: number;
}

function idOf(spec: object): string {
  const ids = spec as Readonly<Record<string, string | undefined>>;
  return ids["deploymentId"] ?? ids["sentinelId"] ?? ids["ciliumNetworkPolicyId"] ?? "";
}

function codeOf(error: unknown): string {
  return error instanceof ConnectError ? wordOf(error.code) : "its own";
}

function wordOf(code: Code): string {
  return Code[code].replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}
