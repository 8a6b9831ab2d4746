// The agent's identity and the current status of its controllers. AgentService, the health checks and the state
// reports all read this one view, so they never contradict each other.
import { create } from "@bufbuild/protobuf";
import type { IsolationConfig } from "../config/config.ts";
import {
  type AgentStatus,
  AgentStatusSchema,
  BreakerStatus_State,
  type ControllerStatus,
  type LeaseStatus,
  StreamStatus_State,
} from "../gen/krane/v1/agent_pb.ts";
import type { HealthCheck } from "../http/health.ts";
import { ciliumNetworkPolicies } from "../kube/resources.ts";
import type { AgentInspector, ControllerInspector } from "../services/agent-service.ts";
import { type LeaseView, noLeaseView } from "./lease-view.ts";
import { hasOtherVersion, otherVersionWarning } from "./peer-version.ts";

export interface AgentIdentity {
  readonly instanceId: string;
  readonly region: string;
  readonly version: string;
  readonly startedAtMs: number;
  /** Whether it serves the logs of pods. */
  readonly servesLogs?: boolean;
  /** Undefined until it is known. */
  clusterId(): string | undefined;
}

export type Isolation = Pick<IsolationConfig, "networkPolicy" | "runtimeClass">;

export interface ViewedController extends ControllerInspector {
  status(): ControllerStatus;
  failures(): ReadonlyMap<string, string>;
}

export class AgentView implements AgentInspector {
  private readonly identity: AgentIdentity;
  private readonly isolation: Isolation;
  private readonly lease: LeaseView;
  private viewed: ReadonlyMap<string, ViewedController> = new Map();

  constructor(identity: AgentIdentity, isolation: Isolation, lease: LeaseView = noLeaseView) {
    this.identity = identity;
    this.isolation = isolation;
    this.lease = lease;
  }

  standby(): string | undefined {
    return this.lease.standby();
  }

  /** For /health/ready, which anyone can read. Empty if no lease is used. */
  leaseFacts(): Readonly<Record<string, string>> {
    const lease = this.lease.summary();
    return lease === undefined ? {} : { lease };
  }

  /** Sorted by name. */
  get controllers(): ReadonlyMap<string, ViewedController> {
    return this.viewed;
  }

  /** Call it before the controller starts, so that one that cannot start is visible. */
  add(name: string, controller: ViewedController): void {
    const all = [...this.viewed, [name, controller] as const];
    this.viewed = new Map(all.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  controllerStatuses(): ControllerStatus[] {
    return [...this.viewed.values()].map((controller) => controller.status());
  }

  status(): AgentStatus {
    const { startedAtMs, clusterId, servesLogs = false, ...identity } = this.identity;
    const controllers = this.controllerStatuses();
    return create(AgentStatusSchema, {
      ...identity,
      startedAtMs: BigInt(Math.round(startedAtMs)),
      clusterId: clusterId() ?? "",
      logs: { enabled: servesLogs },
      controllers,
      warnings: [
        ...(hasOtherVersion(controllers) ? [otherVersionWarning] : []),
        ...missingProtections(this.isolation, controllers),
        ...this.lease.warnings(),
      ],
      ...optional(this.lease.message()),
    });
  }
}

function optional(lease: LeaseStatus | undefined) {
  return lease === undefined ? {} : { lease };
}

const policyKind = `${ciliumNetworkPolicies.group}/${ciliumNetworkPolicies.kind}`;

/** What does not protect tenants, because the settings allow it. */
function missingProtections(
  { networkPolicy, runtimeClass }: Isolation,
  controllers: readonly ControllerStatus[],
): string[] {
  const warnings: string[] = [];
  if (runtimeClass === "")
    warnings.push(
      'trusted code only: new deployments run without a sandbox, on the kernel of the node (isolation.runtime_class = "")',
    );
  const isWithout = controllers.some(({ caches }) =>
    caches.some(({ kind, synced, lastError }) => kind === policyKind && !synced && lastError !== ""),
  );
  if (networkPolicy === "best-effort" && isWithout)
    warnings.push(
      `nothing isolates tenants on the network: the cluster has no ${ciliumNetworkPolicies.kind} that krane can use (isolation.network_policy = "best-effort")`,
    );
  return warnings;
}

/**
 * The checks of /health/ready for the control plane and the Kubernetes API. Anyone who can reach the port can read
 * them, so they name the controller and the kind of problem, but no address, object name or server message. Those are
 * in the log and in AgentService, which needs a token.
 */
export function healthChecks(view: AgentView): ReadonlyMap<string, HealthCheck> {
  const check =
    (problemsOf: (status: ControllerStatus) => readonly string[]): HealthCheck =>
    async () => {
      const problems = view
        .controllerStatuses()
        .flatMap((status) => problemsOf(status).map((problem) => `${status.name}: ${problem}`));
      if (problems.length > 0) throw new Error(problems.join("; "));
    };
  return new Map([
    ["control plane", check(controlPlaneProblems)],
    ["kubernetes", check(kubernetesProblems)],
  ]);
}

function controlPlaneProblems({ stream, breaker }: ControllerStatus): readonly string[] {
  const problems: string[] = [];
  const code = stream?.lastErrorCode || "ended";
  if (stream?.state === StreamStatus_State.BACKING_OFF) problems.push(`stream is down (${code})`);
  // The first attempt is not a problem; an attempt after a failure is.
  if (stream?.state === StreamStatus_State.CONNECTING && stream.lastErrorCode !== "")
    problems.push(`stream is reconnecting (${code})`);
  if (breaker?.state === BreakerStatus_State.OPEN) problems.push("reports are failing");
  return problems;
}

/** Kept short: a long response is truncated, and four controllers watch ten kinds. */
function kubernetesProblems({ caches }: ControllerStatus): readonly string[] {
  const closed = caches
    .filter(({ synced, lastError }) => !synced || lastError !== "")
    .map(({ kind }) => kind.slice(kind.lastIndexOf("/") + 1));
  return closed.length === 0 ? [] : [`cannot watch ${closed.join(", ")}`];
}
