// What the events of an object's history are called. Pure.
import type { Event } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Word } from "./words.ts";

const words: Readonly<Record<string, Word>> = {
  set: { text: "changed the desired state", tone: "calm" },
  stopped: { text: "ordered its deletion", tone: "busy" },
  removed: { text: "removed it", tone: "busy" },
  reported: { text: "reported:", tone: "calm" },
  troubled: { text: "reported trouble:", tone: "bad" },
  recovered: { text: "reported that it recovered", tone: "good" },
  repaired: { text: "put back what somebody else had changed:", tone: "busy" },
  released: { text: "allowed its deletion", tone: "busy" },
  adopted: { text: "allowed its adoption", tone: "busy" },
  secret_set: { text: "set the secret", tone: "calm" },
  secret_unset: { text: "removed the secret", tone: "calm" },
  paused: { text: "paused its releases", tone: "busy" },
  resumed: { text: "resumed its releases", tone: "calm" },
  release_started: { text: "started", tone: "busy" },
  release_current: { text: "made current:", tone: "good" },
  release_draining: { text: "is draining", tone: "busy" },
  release_failed: { text: "gave up", tone: "bad" },
  release_ended: { text: "ended", tone: "calm" },
};

/** A newer server may record events that this page does not know. */
export function eventText({ event }: Event): Word {
  return Object.hasOwn(words, event) ? (words[event] ?? unknown(event)) : unknown(event);
}

function unknown(event: string): Word {
  return { text: event, tone: "calm" };
}

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
