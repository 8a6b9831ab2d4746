// How the CLI shows a sentinel. Its status report has the number of available pods and the image that they run.
import { type ApplySentinel, Health } from "../../gen/ctrl/v1/sentinel_pb.ts";
import type { ObjectView } from "../../gen/krane/admin/v1/admin_pb.ts";
import { type KindView, noPods } from "../kind-view.ts";
import { readyPodsText, workloadColumns, workloadText } from "../workload-view.ts";

const healthWords: Partial<Record<Health, string>> = {
  [Health.HEALTHY]: "healthy",
  [Health.UNHEALTHY]: "unhealthy",
  [Health.PAUSED]: "paused",
};

export const sentinelView: KindView = {
  columns: workloadColumns,
  podsOf(object) {
    const wanted = specOf(object)?.replicas;
    if (object.sentinel === undefined) return { ...noPods, wanted };
    const running = object.sentinel.availableReplicas;
    const surplus = Math.max(0, running - (wanted ?? running));
    return { ...noPods, wanted, isReported: true, running, surplus };
  },
  listedPods: () => [],
  reportedAtMs: ({ sentinel }) => sentinel?.reportedAtMs,
  wantedText(object) {
    const spec = specOf(object);
    return spec === undefined ? "" : workloadText(spec);
  },
  liveText({ sentinel }, pods) {
    const health = (sentinel && healthWords[sentinel.health]) ?? "health unknown";
    const noImage = sentinel?.imageUnknown ? "image not reported" : "no single image yet";
    return `${readyPodsText(pods)}, ${health}, ${sentinel?.runningImage || noImage}`;
  },
  differencesOf(object) {
    const desired = specOf(object)?.image;
    if (desired === undefined || object.sentinel === undefined || object.sentinel.imageUnknown) return [];
    const live = object.sentinel.runningImage || "several";
    return desired === live ? [] : [{ field: "image", desired, live }];
  },
  // Reports on sentinels do not say.
  stillExists: () => false,
  isRollingOut(object) {
    const spec = specOf(object);
    const { runningImage = "", imageUnknown = false } = object.sentinel ?? {};
    return spec !== undefined && !imageUnknown && runningImage !== spec.image;
  },
};

function specOf({ spec }: ObjectView): ApplySentinel | undefined {
  return spec?.spec.case === "sentinel" ? spec.spec.value : undefined;
}
