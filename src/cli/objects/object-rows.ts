// An object as people see it in one line: pure, from what the control plane answers to words.
import { ReportDeploymentStatusRequest_Update_Instance_Status as InstanceStatus } from "../../gen/ctrl/v1/deployment_pb.ts";
import {
  ObjectView_Desired as Desired,
  type Environment,
  type ObjectView,
  ObjectView_Phase as Phase,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { ageOf } from "../terminal/age.ts";
import type { Tone } from "../terminal/colours.ts";
import type { Cell } from "../terminal/table.ts";
import type { KindName } from "./object-names.ts";
import { titleOf } from "./object-search.ts";

const phases: Readonly<Record<Phase, readonly [word: string, tone: Tone | undefined]>> = {
  [Phase.UNSPECIFIED]: ["Unknown", "bad"],
  [Phase.WAITING]: ["Waiting", "busy"],
  [Phase.PROGRESSING]: ["Progressing", "busy"],
  [Phase.READY]: ["Ready", "good"],
  [Phase.PAUSED]: ["Paused", "faint"],
  [Phase.FAILED]: ["Failed", "bad"],
  [Phase.DELETING]: ["Deleting", "busy"],
  [Phase.DELETED]: ["Deleted", "faint"],
};

export function phaseCell({ phase }: Pick<ObjectView, "phase">): { text: string; tone: Tone | undefined } {
  // A newer server may know more phases than this client.
  const [text, tone] = phases[phase] ?? phases[Phase.UNSPECIFIED];
  return { text, tone };
}

/** How many pods are ready of how many that should be; undefined for what has no pods. */
export function readyOf({
  desired,
  spec,
  deployment,
  sentinel,
}: ObjectView): { ready: number; wanted: number } | undefined {
  const wanted = (replicas: number) => (desired === Desired.STOPPED ? 0 : replicas);
  switch (spec?.spec.case) {
    case "deployment": {
      const running = deployment?.instances.filter(({ status }) => status === InstanceStatus.RUNNING);
      return { ready: running?.length ?? 0, wanted: wanted(spec.spec.value.replicas) };
    }
    case "sentinel":
      return { ready: sentinel?.availableReplicas ?? 0, wanted: wanted(spec.spec.value.replicas) };
    default:
      return undefined;
  }
}

export function readyText(object: ObjectView): string {
  const pods = readyOf(object);
  return pods === undefined ? "" : `${pods.ready}/${pods.wanted}`;
}

/** What is wrong with it; empty where all is well. */
export function reasonOf({ trouble }: ObjectView): string {
  return trouble?.reason || trouble?.failing || "";
}

export function nameInCluster({ namespace, name }: ObjectView): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}

export interface Table {
  readonly titles: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

interface Column {
  readonly title: string;
  readonly wide?: true;
  cell(object: ObjectView, nowMs: number): Cell;
}

const wide = { wide: true } as const;

const image: Column = {
  title: "IMAGE",
  cell: ({ spec }) =>
    spec?.spec.case === "deployment" || spec?.spec.case === "sentinel" ? spec.spec.value.image : "",
};
const environment: Column = {
  ...wide,
  title: "ENVIRONMENT",
  cell: ({ spec }) =>
    spec?.spec.case === "deployment" || spec?.spec.case === "sentinel" ? spec.spec.value.environmentId : "",
};
const reported: Column = {
  ...wide,
  title: "REPORTED",
  cell: ({ deployment, sentinel }, nowMs) =>
    ageOf(deployment?.reportedAtMs ?? sentinel?.reportedAtMs ?? 0, nowMs),
};
const name: Column = { title: "NAME", cell: nameInCluster };
const ready: Column = { title: "READY", cell: readyText };
const phase: Column = { title: "PHASE", cell: phaseCell };
const version: Column = { ...wide, title: "VERSION", cell: (object) => String(object.version) };
const reason: Column = {
  ...wide,
  title: "REASON",
  cell: (object) => ({ text: reasonOf(object), tone: "bad" }),
};
const id: Column = { title: "ID", cell: ({ ref }) => ref?.id ?? "" };
const workload = [id, name, ready, phase, image, version, environment, reported, reason];

const columnsOf: Readonly<Record<Exclude<KindName, "environment"> | "all", readonly Column[]>> = {
  deployment: workload,
  sentinel: workload,
  policy: [
    id,
    name,
    phase,
    { title: "DEPLOYMENT", cell: ({ deploymentId }) => deploymentId },
    version,
    reason,
  ],
  all: [
    { title: "OBJECT", cell: ({ ref }) => titleOf(ref) },
    name,
    ready,
    phase,
    version,
    environment,
    reason,
  ],
};

export function objectTable(
  kind: keyof typeof columnsOf,
  objects: readonly ObjectView[],
  options: { readonly wide: boolean; readonly nowMs: number },
): Table {
  const columns = columnsOf[kind].filter((column) => options.wide || column.wide !== true);
  return {
    titles: columns.map(({ title }) => title),
    rows: objects.map((object) => columns.map(({ cell }) => cell(object, options.nowMs))),
  };
}

export function environmentTable(
  environments: readonly Environment[],
  options: { readonly wide: boolean },
): Table {
  return {
    titles: ["ID", "WORKSPACE", "PROJECT", "SECRETS", ...(options.wide ? ["VERSION"] : [])],
    rows: environments.map(({ id, workspaceId, projectId, secretNames, version }) => [
      id,
      workspaceId,
      projectId,
      options.wide ? secretNames.join(",") : String(secretNames.length),
      ...(options.wide ? [String(version)] : []),
    ]),
  };
}
