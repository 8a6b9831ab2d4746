// Picks the releases of an app that say how it is.
import { type AppView, type ObjectView, ObjectView_Phase as Phases } from "../gen/krane/admin/v1/admin_pb.ts";
import { Release_Phase as Phase, type Release } from "../gen/krane/admin/v1/app_pb.ts";
import { isReleaseOf } from "../kinds/deployment/release-names.ts";

export interface ShownRelease {
  readonly number: number;
  readonly release: Release;
  /** Why it failed. */
  readonly reason: string;
  /** Undefined if it has ended. */
  readonly deployment: ObjectView | undefined;
}

export interface ShownReleases {
  /** The one that the app runs on. */
  readonly current: ShownRelease | undefined;
  /** The one that is about to replace it. */
  readonly starting: ShownRelease | undefined;
  /** The newest one, if it failed and the app was not changed back to the current one. */
  readonly failed: ShownRelease | undefined;
}

/**
 * Whether the name of the app leads to its current release: "none" without a route or a current release. It has moved
 * where the agent saw it, also while something else about the route is not applied yet. A report from before the release
 * became current may be from before traffic moved away and back.
 */
export function trafficOf(view: AppView): "none" | "moved" | "moving" | "refused" {
  const { route } = view;
  const { current } = releasesOf(view);
  if (route === undefined || current === undefined) return "none";
  if (route.phase === Phases.FAILED) return "refused";
  const { exists = false, deploymentId = "", reportedAtMs = 0n } = route.route ?? {};
  const isThere = exists && deploymentId === current.release.template?.deploymentId;
  const isNew = route.phase !== Phases.WAITING || reportedAtMs >= current.release.currentAtMs;
  return isThere && isNew ? "moved" : "moving";
}

export function releasesOf({ app, deployments }: AppView): ShownReleases {
  const shown = (release: Release | undefined): ShownRelease | undefined =>
    release && {
      number: release.number,
      release,
      reason: release.reason,
      deployment: deployments.find(({ ref }) => ref?.id === release.template?.deploymentId),
    };
  const releases = app?.releases ?? [];
  const newest = releases.at(-1);
  const current = releases.find(({ phase }) => phase === Phase.CURRENT);
  // After a failed release, the app may have been changed back to what runs.
  const isBack = current !== undefined && app?.spec !== undefined && isReleaseOf(app.spec, current);
  return {
    current: shown(current),
    starting: shown(releases.find(({ phase }) => phase === Phase.STARTING)),
    failed: newest?.phase === Phase.FAILED && !isBack ? shown(newest) : undefined,
  };
}
