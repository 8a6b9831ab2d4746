// One snapshot of the region: the control plane's desired state and reports, beside the agent's own state. Both the
// live view and the lines of --headless are made from it, so that they never disagree.
import { ReportDeploymentStatusRequest_Update_Instance_Status as InstanceStatus } from "../gen/ctrl/v1/deployment_pb.ts";
import {
  type ControllerStatus,
  type ObjectStatus,
  ObjectStatus_Desired,
  ObjectStatus_Outcome,
  StreamStatus_State,
} from "../gen/krane/v1/agent_pb.ts";
import { type KindName, kindNames, kindOf, kindOfController } from "../kinds/kinds.ts";
import type { DevRegion } from "./dev-region.ts";
import { loadWantedObjects, type WantedObject } from "./wanted-objects.ts";

export interface DevState {
  readonly stream: string;
  /** By kind and key; objects whose deletion is done are left out. */
  readonly objects: readonly DevObject[];
}

export interface DevObject {
  readonly kind: KindName;
  /** `namespace/name`. */
  readonly key: string;
  /** Empty if the control plane does not know it. */
  readonly id: string;
  /** Empty without one. */
  readonly environment: string;
  readonly image: string;
  readonly want: "run" | "delete" | "unknown";
  readonly desiredVersion: bigint;
  readonly appliedVersion: bigint;
  /** Absent if it has no pods. */
  readonly pods?: DevPods;
  /** Instances reported to the control plane as failing. */
  readonly failing: number;
  readonly outcome: string;
  /** Empty if all is well. */
  readonly reason: string;
}

export interface DevPods {
  readonly ready: number;
  readonly total: number;
}

export async function loadDevState(region: DevRegion, signal: AbortSignal): Promise<DevState> {
  const { agent } = region;
  const [status, objects, rows] = await Promise.all([
    agent.status(signal),
    agent.objects(signal),
    loadWantedObjects(region, signal),
  ]);
  const inspected = new Map(objects.map((object) => [nameOf(inspectedKind(object), object.key), object]));
  const shown: DevObject[] = [];
  for (const wanted of rows) {
    const name = nameOf(wanted.kind, keyOf(wanted));
    const object = inspected.get(name);
    inspected.delete(name);
    if (!isGone(wanted, object)) shown.push(wantedObject(wanted, object));
  }
  const others = [...inspected.values()].filter(({ reason }) => reason !== "").map(unknownObject);
  const controllers = status?.controllers ?? [];
  const stream = streamsText(controllers, region.faults.openStreams);
  return { stream, objects: [...shown, ...others].sort(compare) };
}

/** Whether every desired object is up to date and ready. */
export function isSettled(objects: readonly DevObject[]): boolean {
  return objects.every(isHealthy);
}

export function isHealthy(object: DevObject): boolean {
  const { want, pods, desiredVersion, appliedVersion, failing, reason } = object;
  const isReady = pods === undefined || pods.ready === pods.total;
  return want === "run" && isReady && appliedVersion === desiredVersion && failing === 0 && reason === "";
}

function keyOf({ kind, spec }: WantedObject): string {
  return kindOf(kind).keyOf(spec);
}

function nameOf(kind: KindName, key: string): string {
  return `${kind} ${key}`;
}

function inspectedKind({ controller }: ObjectStatus): KindName {
  const kind = kindOfController(controller);
  if (kind === undefined) throw new TypeError(`no kind has a controller called ${controller}`);
  return kind.name;
}

function compare(a: DevObject, b: DevObject): number {
  return kindNames.indexOf(a.kind) - kindNames.indexOf(b.kind) || (a.key < b.key ? -1 : 1);
}

function isGone({ isWanted, view }: WantedObject, object: ObjectStatus | undefined): boolean {
  if (isWanted || view.deployment?.exists) return false;
  return object === undefined || object.outcome === ObjectStatus_Outcome.DELETED;
}

function wantedObject(wanted: WantedObject, object: ObjectStatus | undefined): DevObject {
  const { kind, id, spec, isWanted, view } = wanted;
  const instances = view.deployment?.instances ?? [];
  const failing = instances.filter(({ status }) => status === InstanceStatus.FAILED).length;
  const replicas = "replicas" in spec ? spec.replicas : undefined;
  const total = object?.total || (isWanted ? replicas : 0);
  return {
    ...inspected(object),
    kind,
    key: keyOf(wanted),
    id,
    environment: "environmentId" in spec ? spec.environmentId : "",
    image: "image" in spec ? spec.image : "",
    want: isWanted ? "run" : "delete",
    desiredVersion: view.version,
    ...(total !== undefined && { pods: { ready: object?.ready ?? 0, total } }),
    failing,
  };
}

function unknownObject(object: ObjectStatus): DevObject {
  const want = object.desired === ObjectStatus_Desired.DELETE ? "delete" : "unknown";
  const { key, desiredVersion } = object;
  const kind = inspectedKind(object);
  return {
    ...inspected(object),
    kind,
    key,
    id: "",
    environment: "",
    image: "",
    want,
    desiredVersion,
    failing: 0,
  };
}

type Inspected = Pick<DevObject, "appliedVersion" | "outcome" | "reason">;

function inspected(object: ObjectStatus | undefined): Inspected {
  if (object === undefined) return { appliedVersion: 0n, outcome: "pending", reason: "" };
  const { appliedVersion, outcome, reason, fieldPath } = object;
  // Most reasons already name the field.
  const where = fieldPath === undefined || reason.includes(fieldPath) ? "" : `${fieldPath}: `;
  return { appliedVersion, outcome: outcomeText(outcome), reason: `${where}${reason}` };
}

const outcomeTexts = new Map<ObjectStatus_Outcome, string>(
  Object.entries(ObjectStatus_Outcome).map(([name, outcome]) => [outcome, name.toLowerCase()]),
);

function outcomeText(outcome: ObjectStatus_Outcome): string {
  return outcomeTexts.get(outcome) ?? "unknown";
}

/**
 * One word if all streams are in the same state, which is nearly always. A control plane sends nothing before the next
 * change, so an agent that has reconnected takes 15 seconds to be sure that its stream is open. The control plane of
 * `krane dev` knows at once: `openAtServer` streams are open there.
 */
export function streamsText(controllers: readonly ControllerStatus[], openAtServer: number): string {
  const isConnected = controllers.length > 0 && openAtServer >= controllers.length;
  const texts = controllers.map((each) => streamText(each, isConnected));
  const [first = "not open"] = texts;
  if (texts.every((text) => text === first)) return first;
  const kindOf = (name: string) => kindOfController(name)?.plural ?? name;
  return controllers.map(({ name }, index) => `${kindOf(name)} ${texts[index]}`).join(", ");
}

function streamText(controller: ControllerStatus, isConnected: boolean): string {
  const { state = StreamStatus_State.UNSPECIFIED, lastErrorCode = "" } = controller.stream ?? {};
  const because = lastErrorCode === "" ? "" : ` (${lastErrorCode})`;
  switch (state) {
    case StreamStatus_State.OPEN:
      return "open";
    case StreamStatus_State.CONNECTING:
      return isConnected ? "open" : `connecting${because}`;
    case StreamStatus_State.BACKING_OFF:
      return `waiting to reconnect${because}`;
    case StreamStatus_State.UNSUPPORTED:
      return "unsupported";
    default:
      return "not open";
  }
}
