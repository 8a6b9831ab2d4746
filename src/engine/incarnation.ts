// What a controller does when its control plane starts a new incarnation: everything that it knows by number is void,
// and everything is compared with the new history.
//
// - Versions and Deletes of the old history are void. What the old one wanted stays in force until the new one sends
//   something else, or is confirmed not to know the object (K5).
// - Absences are counted from the start; deletions that are held back stay held back.
// - The stream is read from version 0, and everything is reported again. Both are spread over a few seconds, because a
//   failover reaches the agents of all regions at once.
import { type Random, uniform } from "../concurrency/random.ts";
import type { StreamStatus } from "../control-plane/desired-stream.ts";
import type { HistoryChange, ServerHistory } from "../control-plane/server-history.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { DeletionGuard } from "./deletion-guard.ts";
import type { DesiredStore } from "./desired-store.ts";
import type { Reporter } from "./reporter.ts";
import type { VersionCursor } from "./version-cursor.ts";

/** Shorter than the minute between two resync passes. */
export const comparisonWithinMs = 10_000;

export interface IncarnationDeps<Spec> {
  readonly controller: string;
  readonly store: Pick<DesiredStore<Spec>, "startOver">;
  readonly cursor: Pick<VersionCursor, "restart" | "newest">;
  readonly guard: Pick<DeletionGuard, "startOver">;
  readonly reporter: Pick<Reporter, "resendAll">;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "controlPlaneIncarnations" | "controlPlaneIgnored">;
  /** Ends the open stream, and reads it from version 0 after this long. */
  replay(afterMs: number): void;
  /** The key has no desired state any more. */
  forgotten(key: string): void;
  enqueue(key: string): void;
}

export function followIncarnations<Spec>(history: ServerHistory, deps: IncarnationDeps<Spec>): void {
  const { controller, cursor, log, metrics } = deps;
  let ignoredId: string | undefined;
  history.follow({
    seen: () => cursor.newest,
    onNewIncarnation: (change) => startOver(change, deps),
    onIgnored(ignored, current) {
      metrics.controlPlaneIgnored.inc({ controller });
      // Once per server that was left behind, however often it answers.
      if (ignored.id === ignoredId) return;
      ignoredId = ignored.id;
      log.warn("ignoring a control plane of an older incarnation", {
        controller,
        reason: `it is at incarnation ${ignored.ordinal}, the current one is ${current.ordinal}`,
        remedy:
          "stop servers on the old database; if it was restored on purpose, run `krane server new-incarnation`",
      });
    },
  });
}

function startOver<Spec>({ from, to, startsAtZero }: HistoryChange, deps: IncarnationDeps<Spec>): void {
  const { controller, store, cursor, guard, reporter, random, log, metrics } = deps;
  cursor.restart();
  guard.startOver();
  for (const key of store.startOver()) {
    deps.forgotten(key);
    deps.enqueue(key);
  }
  reporter.resendAll(comparisonWithinMs);
  if (!startsAtZero) deps.replay(uniform(random, 0, comparisonWithinMs));
  metrics.controlPlaneIncarnations.inc({ controller });
  log.warn("the control plane started a new incarnation; comparing everything", {
    controller,
    reason: `incarnation ${to.ordinal} replaced ${from === undefined ? "an unnamed one" : from.ordinal}`,
  });
}

/** The stream is about to be read from version 0. */
export function resetCursor<Spec>(
  history: ServerHistory,
  stream: StreamStatus,
  { cursor, store }: { readonly cursor: VersionCursor; readonly store: DesiredStore<Spec> },
): void {
  // A control plane that names its incarnation restarts its numbering only with a new one.
  if (history.isNamed || stream.lastError?.code !== "out_of_range") cursor.rewind();
  else {
    cursor.restart();
    store.forgetVersions();
  }
}
