// One look at the region: what the control plane wants and was told, beside what the agent did. Everything that
// is shown comes from here, so that the live view and the lines of --headless never tell different stories.
import { ReportDeploymentStatusRequest_Update_Instance_Status as InstanceStatus } from "../gen/ctrl/v1/deployment_pb.ts";
import {
  type ControllerStatus,
  type ObjectStatus,
  ObjectStatus_Desired,
  ObjectStatus_Outcome,
  StreamStatus_State,
} from "../gen/krane/v1/agent_pb.ts";
import type { DeploymentReport, Row } from "../server/store.ts";
import type { DevRegion } from "./dev-region.ts";

export interface DevState {
  readonly stream: string;
  /** By key; deployments whose deletion is done are no longer there. */
  readonly objects: readonly DevObject[];
}

export interface DevObject {
  /** `namespace/name`. */
  readonly key: string;
  /** Empty where the control plane knows nothing of it. */
  readonly id: string;
  readonly environment: string;
  readonly image: string;
  readonly want: "run" | "delete" | "unknown";
  readonly desiredVersion: bigint;
  readonly appliedVersion: bigint;
  readonly ready: number;
  readonly total: number;
  /** Instances that the control plane was told are failing. */
  readonly failing: number;
  readonly outcome: string;
  /** Empty where all is well. */
  readonly reason: string;
}

export async function loadDevState(region: DevRegion, signal: AbortSignal): Promise<DevState> {
  const { admin, agent, name } = region;
  const [status, objects, rows] = await Promise.all([
    agent.status(signal),
    agent.objects(signal),
    admin.deployments(name),
  ]);
  const byKey = new Map(objects.map((object) => [object.key, object]));
  const wanted: DevObject[] = [];
  for (const row of rows) {
    const key = keyOf(row);
    const report = await admin.deploymentReport(name, row.id);
    const object = byKey.get(key);
    byKey.delete(key);
    if (!isGone(row, object, report)) wanted.push(wantedObject(row, object, report));
  }
  const others = [...byKey.values()].filter(({ reason }) => reason !== "").map(unknownObject);
  return {
    stream: streamText(status?.controllers[0]),
    objects: [...wanted, ...others].sort((a, b) => (a.key < b.key ? -1 : 1)),
  };
}

/** Whether everything that is wanted runs as wanted. */
export function isSettled({ objects }: DevState): boolean {
  return objects.every(isHealthy);
}

export function isHealthy(object: DevObject): boolean {
  const { want, ready, total, desiredVersion, appliedVersion, failing, reason } = object;
  return (
    want === "run" && ready === total && appliedVersion === desiredVersion && failing === 0 && reason === ""
  );
}

function keyOf({ spec }: Row<"deployment">): string {
  return `${spec.k8sNamespace}/${spec.k8sName}`;
}

function isGone(
  row: Row<"deployment">,
  object: ObjectStatus | undefined,
  report: DeploymentReport | undefined,
): boolean {
  if (row.desired !== "stopped" || report?.exists) return false;
  return object === undefined || object.outcome === ObjectStatus_Outcome.DELETED;
}

function wantedObject(
  { id, spec, desired, version }: Row<"deployment">,
  object: ObjectStatus | undefined,
  report: DeploymentReport | undefined,
): DevObject {
  const failing = (report?.instances ?? []).filter(({ status }) => status === InstanceStatus.FAILED).length;
  return {
    ...inspected(object),
    key: `${spec.k8sNamespace}/${spec.k8sName}`,
    id,
    environment: spec.environmentId,
    image: spec.image,
    want: desired === "running" ? "run" : "delete",
    desiredVersion: version,
    total: object?.total || (desired === "running" ? spec.replicas : 0),
    failing,
  };
}

function unknownObject(object: ObjectStatus): DevObject {
  const want = object.desired === ObjectStatus_Desired.DELETE ? "delete" : "unknown";
  const { key, desiredVersion } = object;
  return { ...inspected(object), key, id: "", environment: "", image: "", want, desiredVersion, failing: 0 };
}

type Inspected = Pick<DevObject, "appliedVersion" | "ready" | "total" | "outcome" | "reason">;

function inspected(object: ObjectStatus | undefined): Inspected {
  if (object === undefined) return { appliedVersion: 0n, ready: 0, total: 0, outcome: "pending", reason: "" };
  const { appliedVersion, ready, total, outcome, reason, fieldPath } = object;
  // Most reasons name the field themselves.
  const where = fieldPath === undefined || reason.includes(fieldPath) ? "" : `${fieldPath}: `;
  return { appliedVersion, ready, total, outcome: outcomeText(outcome), reason: `${where}${reason}` };
}

const outcomeTexts = new Map<ObjectStatus_Outcome, string>(
  Object.entries(ObjectStatus_Outcome).map(([name, outcome]) => [outcome, name.toLowerCase()]),
);

function outcomeText(outcome: ObjectStatus_Outcome): string {
  return outcomeTexts.get(outcome) ?? "unknown";
}

function streamText(controller: ControllerStatus | undefined): string {
  const { state = StreamStatus_State.UNSPECIFIED, lastErrorCode = "" } = controller?.stream ?? {};
  const because = lastErrorCode === "" ? "" : ` (${lastErrorCode})`;
  switch (state) {
    case StreamStatus_State.OPEN:
      return "open";
    case StreamStatus_State.CONNECTING:
      return `connecting${because}`;
    case StreamStatus_State.BACKING_OFF:
      return `waiting to reconnect${because}`;
    default:
      return "not open";
  }
}
