// What a report of an agent says that the one before did not: which objects got into
// trouble, or into another kind of it, and which came out.
import { type ObjectStatus, ObjectStatus_Outcome as Outcome } from "../gen/krane/v1/agent_pb.ts";
import { kindOfController } from "../kinds/kinds.ts";
import type { AgentReport, HistoryEntry } from "./store.ts";

const outcomeWords: Partial<Record<Outcome, string>> = {
  [Outcome.PARKED]: "refused",
  [Outcome.RETRYING]: "retrying",
  [Outcome.CONFLICT]: "conflict",
  [Outcome.BLOCKED]: "deletion held back",
};

/** An agent that lists as many may have more, so that one which is missing may be in trouble all the same. */
const completeBelow = 100;
const outcomeCharsMax = 300;

/** Entries for history, in the order of the report. Objects without an id are left out: history is by id. */
export function troubleNews(before: AgentReport | undefined, after: AgentReport): HistoryEntry[] {
  const old = byObject(before?.report.troubledObjects ?? []);
  const now = byObject(after.report.troubledObjects);
  const troubled = [...now].flatMap(([name, status]) => {
    const known = old.get(name);
    const isNews = known === undefined || gist(known) !== gist(status);
    return isNews ? entryOf(status, "troubled", troubleText(status), after.atMs) : [];
  });
  // One that has just started has not tried anything yet, and knows of no trouble.
  if (!isSameProcess(before, after) || !isListComplete(after)) return troubled;
  const isListed = listingOf(after.report.troubledObjects);
  const recovered = [...old.values()].flatMap((status) =>
    isListed(status) ? [] : entryOf(status, "recovered", "", after.atMs),
  );
  return [...troubled, ...recovered];
}

/** Also by when it started: a person may have given the agent an id that outlives it. */
export function isSameProcess(a: AgentReport | undefined, b: AgentReport): boolean {
  const [one, other] = [a?.report.state, b.report.state];
  return one?.instanceId === other?.instanceId && one?.startedAtMs === other?.startedAtMs;
}

/** Whether an object that is not listed is in no trouble. */
export function isListComplete({ report }: AgentReport): boolean {
  return report.troubledObjects.length < completeBelow;
}

/** Whether an object is among those listed. */
export function listingOf(statuses: readonly ObjectStatus[]): (status: ObjectStatus) => boolean {
  const listed = byObject(statuses);
  // An order to delete has no id in it, so that one in trouble may be listed by its name alone from then on.
  return (status) => listed.has(nameOf(status, status.id)) || listed.has(nameOf(status, ""));
}

function byObject(statuses: readonly ObjectStatus[]): Map<string, ObjectStatus> {
  return new Map(statuses.map((status) => [nameOf(status, status.id), status]));
}

/** Those without an id are told apart by their names in the cluster. */
function nameOf({ controller, key }: ObjectStatus, id: string): string {
  return id === "" ? `${controller} key ${key}` : `${controller} id ${id}`;
}

function troubleText({ outcome, reason, failing }: ObjectStatus): string {
  const word = outcomeWords[outcome];
  const text = [word, reason, failing].filter(Boolean).join(": ");
  return text.length > outcomeCharsMax ? `${text.slice(0, outcomeCharsMax)}...` : text;
}

/** Numbers in a reason are attempts and waiting times, which are no news. */
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
