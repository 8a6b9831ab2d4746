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
