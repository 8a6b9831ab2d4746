// The table cells of an object, for `krane get`. Pure functions of the control plane's response.
import {
  ObjectView_Desired as Desired,
  type Environment,
  type ObjectView,
  ObjectView_Phase as Phase,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import type { ColumnName, ListedPod } from "../../kinds/kind-view.ts";
import { type KindName, kinds } from "../../kinds/kinds.ts";
import { viewOf } from "../../kinds/object-view.ts";
import { ageOf } from "../terminal/age.ts";
import type { Tone } from "../terminal/colours.ts";
import type { Cell } from "../terminal/table.ts";
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

/** `silence`: how long ago the region's agent was last heard, if it is silent. */
export function phaseCell(
  { phase }: Pick<ObjectView, "phase">,
  silence?: string,
): { text: string; tone: Tone | undefined } {
  // A newer server may know more phases than this client.
  const [text, tone] = phases[phase] ?? phases[Phase.UNSPECIFIED];
  if (silence === undefined || phase === Phase.DELETED) return { text, tone };
  return { text: `${text}, last heard ${silence} ago`, tone: tone === "bad" ? tone : "busy" };
}

/** How many pods are ready and how many are wanted; undefined for a kind without pods. */
export function readyOf(object: ObjectView): { ready: number; wanted: number } | undefined {
  const { running: ready, wanted } = viewOf(object).podsOf(object);
  if (wanted === undefined) return undefined;
  return { ready, wanted: object.desired === Desired.STOPPED ? 0 : wanted };
}

export function readyText(object: ObjectView): string {
  const pods = readyOf(object);
  return pods === undefined ? "" : `${pods.ready}/${pods.wanted}`;
}

/** What is wrong with it; empty if nothing is. */
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

export interface Column {
  readonly title: string;
  readonly wide?: true;
  cell(object: ObjectView, options: TableOptions): Cell;
}

export interface TableOptions {
  readonly wide: boolean;
  readonly nowMs: number;
  /** How long ago the region's agent was last heard; absent unless it is silent. */
  readonly silence?: string | undefined;
}

const wide = { wide: true } as const;

const columns: Readonly<Record<ColumnName, Column>> = {
  id: { title: "ID", cell: ({ ref }) => ref?.id ?? "" },
  name: { title: "NAME", cell: nameInCluster },
  ready: { title: "READY", cell: readyText },
  phase: { title: "PHASE", cell: (object, { silence }) => phaseCell(object, silence) },
  image: {
    title: "IMAGE",
    cell({ spec }) {
      const described = spec?.spec.value;
      return described !== undefined && "image" in described ? described.image : "";
    },
  },
  leads: { title: "LEADS TO", cell: ({ route }) => route?.deploymentId ?? "" },
  deployment: { title: "DEPLOYMENT", cell: ({ deploymentId }) => deploymentId },
  version: { ...wide, title: "VERSION", cell: ({ version }) => String(version) },
  environment: {
    ...wide,
    title: "ENVIRONMENT",
    cell({ spec }) {
      const described = spec?.spec.value;
      return described !== undefined && "environmentId" in described ? described.environmentId : "";
    },
  },
  restarts: {
    title: "RESTARTS",
    cell: (object) => restartsOfPods(viewOf(object).listedPods(object)),
  },
  age: { title: "AGE", cell: ({ createdAtMs }, { nowMs }) => ageOf(createdAtMs, nowMs) },
  reported: {
    ...wide,
    title: "REPORTED",
    cell: (object, { nowMs }) => ageOf(viewOf(object).reportedAtMs(object) ?? 0, nowMs),
  },
  reason: { ...wide, title: "REASON", cell: (object) => ({ text: reasonOf(object), tone: "bad" }) },
};

/** Of all pods; empty if the agent is too old to report them. */
export function restartsOfPods(pods: readonly ListedPod[]): string {
  const known = pods.flatMap(({ restarts }) => restarts ?? []);
  return known.length === 0 ? "" : String(known.reduce((sum, each) => sum + each, 0));
}

/** For objects of all kinds in one table. */
const mixedColumns: readonly Column[] = [
  { title: "OBJECT", cell: ({ ref }) => titleOf(ref) },
  ...(["name", "ready", "phase", "version", "environment", "reason"] as const).map((name) => columns[name]),
];

export function objectColumns(
  kind: KindName | "all",
  options: Pick<TableOptions, "wide">,
): readonly Column[] {
  const all = kind === "all" ? mixedColumns : kinds[kind].view.columns.map((name) => columns[name]);
  return all.filter((column) => options.wide || column.wide !== true);
}

export function environmentTitles({ wide }: Pick<TableOptions, "wide">): readonly string[] {
  return ["ID", "WORKSPACE", "PROJECT", "SECRETS", ...(wide ? ["VERSION"] : [])];
}

export function environmentCells(
  { id, workspaceId, projectId, secretNames, version }: Environment,
  { wide }: Pick<TableOptions, "wide">,
): readonly Cell[] {
  const secrets = wide ? secretNames.join(",") : String(secretNames.length);
  return [id, workspaceId, projectId, secrets, ...(wide ? [String(version)] : [])];
}
