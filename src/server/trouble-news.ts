// Compares an agent's report with the previous one: which objects got into trouble, or into
// a different kind of it, and which recovered.
import { type ObjectStatus, ObjectStatus_Outcome as Outcome } from "../gen/krane/v1/agent_pb.ts";
import { kindOfController } from "../kinds/kinds.ts";
import type { AgentReport, HistoryEntry } from "./store.ts";

const outcomeWords: Partial<Record<Outcome, string>> = {
  [Outcome.PARKED]: "refused",
  [Outcome.RETRYING]: "retrying",
  [Outcome.CONFLICT]: "conflict",
  [Outcome.BLOCKED]: "deletion held back",
};

/** An agent that lists this many may have more, so an object that is not listed may still be in trouble. */
const completeBelow = 100;
const outcomeCharsMax = 300;

/** History entries, in the order of the report. Objects without an id are left out: history is by id. */
export function troubleNews(before: AgentReport | undefined, after: AgentReport): HistoryEntry[] {
  const old = byObject(before?.report.troubledObjects ?? []);
  const now = byObject(after.report.troubledObjects);
  const troubled = [...now].flatMap(([name, status]) => {
    const known = old.get(name);
    const isNews = known === undefined || gist(known) !== gist(status);
    return isNews ? entryOf(status, "troubled", troubleText(status), after.atMs) : [];
  });
  // An agent that has just started has not tried anything yet, and knows of no trouble.
  if (!isSameProcess(before, after) || !isListComplete(after)) return troubled;
  const isListed = listingOf(after.report.troubledObjects);
  const recovered = [...old.values()].flatMap((status) =>
    isListed(status) ? [] : entryOf(status, "recovered", "", after.atMs),
  );
  return [...troubled, ...recovered];
}

/** Also compares the start time: the agent's id may be configured and outlive the process. */
export function isSameProcess(a: AgentReport | undefined, b: AgentReport): boolean {
  const [one, other] = [a?.report.state, b.report.state];
  return one?.instanceId === other?.instanceId && one?.startedAtMs === other?.startedAtMs;
}

/** Whether an object that is not listed is certainly not in trouble. */
export function isListComplete({ report }: AgentReport): boolean {
  return report.troubledObjects.length < completeBelow;
}

/** Whether an object is listed. */
export function listingOf(statuses: readonly ObjectStatus[]): (status: ObjectStatus) => boolean {
  const listed = byObject(statuses);
  // A deletion carries no id, so an object in trouble may from then on be listed by its name only.
  return (status) => listed.has(nameOf(status, status.id)) || listed.has(nameOf(status, ""));
}

function byObject(statuses: readonly ObjectStatus[]): Map<string, ObjectStatus> {
  return new Map(statuses.map((status) => [nameOf(status, status.id), status]));
}

/** Objects without an id are told apart by their names in the cluster. */
function nameOf({ controller, key }: ObjectStatus, id: string): string {
  return id === "" ? `${controller} key ${key}` : `${controller} id ${id}`;
}

function troubleText({ outcome, reason, failing }: ObjectStatus): string {
  const word = outcomeWords[outcome];
  const text = [word, reason, failing].filter(Boolean).join(": ");
  return text.length > outcomeCharsMax ? `${text.slice(0, outcomeCharsMax)}...` : text;
}

/** Numbers in a reason are attempts and delays, which are not news. */
function gist(status: ObjectStatus): string {
  return `${status.desiredVersion} ${troubleText(status).replaceAll(/\d+/g, "#")}`;
}

function entryOf(
  { controller, id, desiredVersion: version }: ObjectStatus,
  event: "troubled" | "recovered",
  outcome: string,
  atMs: number,
): HistoryEntry[] {
  const kind = kindOfController(controller)?.name;
  if (kind === undefined || id === "") return [];
  return [{ by: "agent", atMs, kind, id, version, event, outcome }];
}
