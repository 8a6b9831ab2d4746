// The events of a history: which of them are one line, and how two lists become one. Pure.
import type { Event } from "../../gen/krane/admin/v1/admin_pb.ts";

/** One line of a history: an event, or several reports of an agent in a row. */
export interface Line {
  /** Newest first. */
  readonly events: readonly Event[];
}

/** A program that keeps crashing makes many reports; between them, a change would be hard to find. Newest first. */
export function linesOf(events: readonly Event[]): readonly Line[] {
  const lines: Event[][] = [];
  for (const event of events) {
    const last = lines.at(-1);
    const [first] = last ?? [];
    if (last !== undefined && first !== undefined && isObserved(first) && isObserved(event)) last.push(event);
    else lines.push([event]);
  }
  return lines.map((each) => ({ events: each }));
}

const observed: ReadonlySet<string> = new Set(["reported", "troubled", "recovered"]);

function isObserved({ event }: Event): boolean {
  return observed.has(event);
}

/** Events of two lists, each newest first, without repetition. */
export function mergedEvents(some: readonly Event[], more: readonly Event[]): readonly Event[] {
  const byEntry = new Map([...some, ...more].map((event) => [event.entry, event]));
  return [...byEntry.values()].toSorted((a, b) => (a.entry > b.entry ? -1 : 1));
}
