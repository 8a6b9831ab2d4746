// What changed between two looks at the region, one line each: the output of --headless, and the recent events
// of the live view. Pure.
import { type DevObject, type DevState, isSettled } from "./dev-state.ts";

export function changeLines(before: DevState | undefined, after: DevState): readonly string[] {
  const lines: string[] = [];
  if (before?.stream !== after.stream) lines.push(`stream: ${after.stream}`);
  const old = new Map((before?.objects ?? []).map((object) => [object.key, object]));
  for (const object of after.objects) {
    const line = describeObject(object);
    const previous = old.get(object.key);
    old.delete(object.key);
    if (previous === undefined || describeObject(previous) !== line) lines.push(line);
  }
  for (const key of old.keys()) lines.push(`${key}: gone`);
  const isNewlySettled = isSettled(after) && !(before !== undefined && isSettled(before));
  if (isNewlySettled && after.objects.length > 0) lines.push(settledText(after.objects.length));
  return lines;
}

function settledText(count: number): string {
  return count === 1 ? "the deployment is ready" : `all ${count} deployments are ready`;
}

export function describeObject(object: DevObject): string {
  const { key, desiredVersion, appliedVersion, ready, total } = object;
  return `${key}: desired v${desiredVersion}, applied v${appliedVersion}, ready ${ready}/${total}, ${statusText(object)}`;
}

/** The last outcome, and why, as one line whatever a server has put into its messages. */
export function statusText({ want, outcome, reason, failing }: DevObject): string {
  const isDeleting = want === "delete" && outcome !== "deleted" && reason === "";
  const parts = [isDeleting ? "deleting" : outcome];
  if (failing > 0) parts.push(`${failing} failing`);
  const text = parts.join(", ");
  return reason === "" ? text : `${text}: ${printable(reason)}`;
}

/** Without control characters, which could move the cursor of a terminal or forge a line. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, " ").trim();
}
