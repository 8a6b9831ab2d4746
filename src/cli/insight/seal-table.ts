// The part of krane status about seals: which objects carry the seal of which key. It is shown while there is something
// to do about it: an older key is still configured, or some objects are not sealed by this krane.
import type { ControllerStatus, SealCounts } from "../../gen/krane/v1/agent_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Paint, Tone } from "../terminal/colours.ts";
import { type Cell, renderTable } from "../terminal/table.ts";

type Row = Pick<
  SealCounts,
  "kind" | "synced" | "current" | "adopted" | "unsealed" | "otherRegion" | "unknownKey" | "foreign"
> & { readonly older: ReadonlyMap<string, number> };

/** Empty if every object is sealed with the only key. */
export function sealsText(controllers: readonly ControllerStatus[], isOld: boolean, paint: Paint): string {
  const rows = rowsOf(controllers.flatMap(({ seals }) => seals));
  const older = [...new Set(rows.flatMap((row) => [...row.older.keys()]))];
  const isStrange = (row: Row) => row.unsealed + row.otherRegion + row.unknownKey + row.foreign > 0;
  if (older.length === 0 && !rows.some(isStrange)) return "";
  const keyId = controllers.find(({ sealKeyId }) => sealKeyId !== "")?.sealKeyId ?? "";
  const titles = [
    "SEALED",
    `KEY ${keyId}`,
    ...older.map((id) => `OLDER KEY ${id}`),
    "ADOPTED",
    "UNSEALED",
    "OTHER REGION",
    "UNKNOWN KEY",
    "FOREIGN",
  ].map(printable);
  const table = renderTable(
    titles,
    rows.map((row) => cellsOf(row, older)),
    paint,
  );
  const isKnown = !isOld && controllers.every(isComplete);
  return `${table}${older.map((id) => advice(id, rows, isKnown)).join("")}`;
}

/** Empty if no object carries the seal of another krane. */
export function adoptHint(controllers: readonly ControllerStatus[], region: string): string {
  const count = controllers
    .flatMap(({ seals }) => seals)
    .reduce((sum, { otherRegion, unknownKey }) => sum + otherRegion + unknownKey, 0);
  if (count === 0) return "";
  const objects = count === 1 ? "1 object" : `${count} objects`;
  return `${objects} of another krane: krane adopt --dry-run --region ${printable(region)}\n`;
}

/** Several controllers have objects of the same kind. */
function rowsOf(counts: readonly SealCounts[]): readonly Row[] {
  const byKind = new Map<string, Row>();
  for (const one of counts) byKind.set(one.kind, sumOf(byKind.get(one.kind), one));
  return [...byKind.values()].sort((a, b) => (a.kind < b.kind ? -1 : 1));
}

function sumOf(row: Row | undefined, counts: SealCounts): Row {
  const older = new Map(row?.older);
  for (const { keyId, objects } of counts.older) older.set(keyId, (older.get(keyId) ?? 0) + objects);
  return {
    kind: counts.kind,
    synced: counts.synced && (row?.synced ?? true),
    current: counts.current + (row?.current ?? 0),
    older,
    adopted: counts.adopted + (row?.adopted ?? 0),
    unsealed: counts.unsealed + (row?.unsealed ?? 0),
    otherRegion: counts.otherRegion + (row?.otherRegion ?? 0),
    unknownKey: counts.unknownKey + (row?.unknownKey ?? 0),
    foreign: counts.foreign + (row?.foreign ?? 0),
  };
}

function cellsOf(row: Row, older: readonly string[]): Cell[] {
  const count = (value: number, tone: Tone): Cell => ({
    // An incomplete list may still grow.
    text: row.synced ? `${value}` : `${value} or more`,
    tone: value === 0 ? undefined : tone,
  });
  return [
    printable(row.kind),
    count(row.current, "good"),
    ...older.map((id) => count(row.older.get(id) ?? 0, "busy")),
    count(row.adopted, "faint"),
    count(row.unsealed, "busy"),
    count(row.otherRegion, "bad"),
    count(row.unknownKey, "bad"),
    count(row.foreign, "faint"),
  ];
}

/** Whether the counts will not grow: right after a start, the agent has not read every pull secret yet. */
function isComplete({ seals, resync, queue, retrying }: ControllerStatus): boolean {
  const isBusy = (queue?.waiting ?? 0) + (queue?.inFlight ?? 0) + retrying > 0;
  return resync !== undefined && !isBusy && seals.every(({ synced }) => synced);
}

function advice(keyId: string, rows: readonly Row[], isKnown: boolean): string {
  const objects = rows.reduce((sum, { older }) => sum + (older.get(keyId) ?? 0), 0);
  const id = printable(keyId);
  if (objects > 0)
    return `keep the key ${id}: ${objects} ${objects === 1 ? "object is" : "objects are"} sealed with it\n`;
  return isKnown
    ? `the key ${id} can be removed: no object is sealed with it\n`
    : `keep the key ${id}: not all objects are known yet\n`;
}
