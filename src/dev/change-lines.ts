// Lists what changed between two states of the region, one line per change: the output of --headless, and the
// recent events of the live view. Pure.
import { allKinds, type KindName } from "../kinds/kinds.ts";
import { printable } from "../telemetry/scrub.ts";
import { type DevObject, type DevState, isSettled } from "./dev-state.ts";

export function changeLines(before: DevState | undefined, after: DevState): readonly string[] {
  const lines: string[] = [];
  if (before?.stream !== after.stream) lines.push(`streams: ${after.stream}`);
  const old = new Map((before?.objects ?? []).map((object) => [titleOf(object), object]));
  for (const object of after.objects) {
    const line = describeObject(object);
    const title = titleOf(object);
    const previous = old.get(title);
    old.delete(title);
    if (previous === undefined || describeObject(previous) !== line) lines.push(line);
  }
  for (const title of old.keys()) lines.push(`${title}: gone`);
  return [...lines, ...settledLines(before, after)];
}

/** Per kind, because kinds settle at different times: some only after half a minute without trouble. */
function settledLines(before: DevState | undefined, after: DevState): readonly string[] {
  return allKinds.flatMap(({ name, plural, makesPods }) => {
    const objects = ofKind(after, name);
    if (objects.length === 0 || !isSettled(objects)) return [];
    if (before !== undefined && isSettled(ofKind(before, name))) return [];
    const state = makesPods ? "ready" : "in place";
    return [
      objects.length === 1 ? `the ${name} is ${state}` : `all ${objects.length} ${plural} are ${state}`,
    ];
  });
}

function ofKind({ objects }: DevState, kind: KindName): readonly DevObject[] {
  return objects.filter((object) => object.kind === kind);
}

function titleOf({ kind, key }: DevObject): string {
  return `${kind} ${key}`;
}

function describeObject(object: DevObject): string {
  const { desiredVersion, appliedVersion, pods } = object;
  const ready = pods === undefined ? "" : ` ready ${pods.ready}/${pods.total},`;
  return `${titleOf(object)}: desired v${desiredVersion}, applied v${appliedVersion},${ready} ${statusText(object)}`;
}

/** The last outcome and its reason, on one line even if a message contains line breaks. */
export function statusText({ want, outcome, reason, failing }: DevObject): string {
  const isDeleting = want === "delete" && outcome !== "deleted" && reason === "";
  const parts = [isDeleting ? "deleting" : outcome];
  if (failing > 0) parts.push(`${failing} failing`);
  const text = parts.join(", ");
  return reason === "" ? text : `${text}: ${printable(reason)}`;
}
