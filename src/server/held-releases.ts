// The releases of held-back deletions that wait for the agent of one region. A release
// ends with the first report that no longer lists its deletion, or after ten minutes: an
// unused release could otherwise allow a later deletion that is held back for another
// reason.
import type { BlockedDeletion } from "../gen/krane/v1/agent_pb.ts";
import type { AgentReport, HeldDeletion } from "./store.ts";

export const releaseAgeMaxMs = 10 * 60_000;

export interface Release extends HeldDeletion {
  readonly atMs: number;
}

/** The releases that the agent still needs, according to the report that it just sent. */
export function releasesFor<R extends Release>(releases: readonly R[], { report, atMs }: AgentReport): R[] {
  return releases.filter(
    (release) =>
      atMs - release.atMs <= releaseAgeMaxMs && findHeld(report.blockedDeletions, release) !== undefined,
  );
}

export function findHeld(
  deletions: readonly BlockedDeletion[],
  { controller, key }: HeldDeletion,
): BlockedDeletion | undefined {
  return deletions.find((each) => each.controller === controller && each.key === key);
}
