// K7, K9 and K14: no plaintext in anything that an agent writes, logs or reports, and what it reports was true.
import type {
  ReportDeploymentStatusesRequest,
  ReportDeploymentStatusRequest,
} from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import type { AuditedChange, AuditRecord, LiveObject } from "../sim-cluster.ts";
import type { Oracle } from "../sim-region.ts";
import { canary } from "../sim-vault.ts";
import type { World } from "../world.ts";
import { isAgent } from "./audit-view.ts";

// A watch may be silent for 90 s before it is opened again, and an agent may be stalled or cut off for a minute or two.
const staleMaxMs = 420_000;

export class SpeechOracle implements Oracle {
  private readonly world: World;
  /** When each pod was last ready; infinite while it is. */
  private readonly readyMs = new Map<string, number>();
  /** When each ReplicaSet was last absent; infinite while it is. */
  private readonly absentMs = new Map<string, number>();

  constructor(world: World) {
    this.world = world;
  }

  onAudit({ actor, request }: AuditRecord): void {
    if (!isAgent(actor) || request.body === undefined) return;
    if (JSON.stringify(request.body).includes(canary))
      this.world.violate("K7", `${actor} sent a plaintext to ${request.path}`);
  }

  onLog(who: string, line: string): void {
    if (line.includes(canary)) this.world.violate("K7", `${who} logged a plaintext`);
  }

  onChange({ plural, name, before, after }: AuditedChange): void {
    const nowMs = this.world.clock.nowMs();
    if (plural === "pods") {
      if (after !== undefined && isReady(after)) this.readyMs.set(name, Number.POSITIVE_INFINITY);
      else if (before !== undefined && isReady(before)) this.readyMs.set(name, nowMs);
    }
    if (plural === "replicasets") {
      if (after === undefined) this.absentMs.set(name, Number.POSITIVE_INFINITY);
      else if (before === undefined) this.absentMs.set(name, nowMs);
    }
  }

  onCall(method: string, message: unknown): void {
    if (method === "ReportDeploymentStatus") this.judge(message as ReportDeploymentStatusRequest);
    if (method !== "ReportDeploymentStatuses") return;
    for (const { report } of (message as ReportDeploymentStatusesRequest).entries)
      if (report !== undefined) this.judge(report);
  }

  private judge({ change }: ReportDeploymentStatusRequest): void {
    const nowMs = this.world.clock.nowMs();
    if (change.case === "delete") {
      const absentMs = this.absentMs.get(change.value.k8sName) ?? Number.POSITIVE_INFINITY;
      if (nowMs - absentMs > staleMaxMs)
        this.world.violate("K14", `${change.value.k8sName} is reported as gone, and was there all the time`);
    }
    if (change.case !== "update") return;
    for (const { k8sName, status } of change.value.instances) {
      if (status !== Status.RUNNING) continue;
      const readyMs = this.readyMs.get(k8sName);
      if (readyMs === undefined)
        this.world.violate("K9", `pod ${k8sName} is reported as running, and never was ready`);
      else if (nowMs - readyMs > staleMaxMs)
        this.world.violate(
          "K9",
          `pod ${k8sName} is reported as running ${Math.round((nowMs - readyMs) / 1000)} s after it was`,
        );
    }
  }
}

function isReady(pod: LiveObject): boolean {
  const { conditions = [] } = (pod["status"] ?? {}) as {
    conditions?: readonly { type: string; status: string }[];
  };
  return conditions.some(({ type, status }) => type === "ContainersReady" && status === "True");
}
