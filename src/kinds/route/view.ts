// How the CLI shows a route. It has no pods: its report says where its Service leads.
import { type ApplyRoute, ApplyRoute_Expose as Expose } from "../../gen/ctrl/v1/route_pb.ts";
import type { ObjectView } from "../../gen/krane/admin/v1/admin_pb.ts";
import { type KindView, noPods } from "../kind-view.ts";
import { leadsTo } from "./report.ts";

const exposeTexts: Partial<Record<Expose, string>> = {
  [Expose.UNSPECIFIED]: "for sentinels only",
  [Expose.ENVIRONMENT]: "for its environment",
  [Expose.CLUSTER]: "for the cluster",
  [Expose.GATEWAY]: "for the Gateway",
};

export const routeView: KindView = {
  columns: ["id", "name", "phase", "leads", "version", "environment", "reported", "reason"],
  podsOf: () => noPods,
  listedPods: () => [],
  reportedAtMs: ({ route }) => route?.reportedAtMs,
  wantedText(object) {
    const spec = specOf(object);
    if (spec === undefined) return "";
    const parts = [leadsTo(spec.deploymentId), exposeTexts[spec.expose] ?? "for others", ...spec.hostnames];
    return parts.join(", ");
  },
  liveText: ({ route }) => (route?.exists === true ? leadsTo(route.deploymentId) : ""),
  differencesOf(object) {
    const desired = specOf(object)?.deploymentId;
    if (desired === undefined || object.route?.exists !== true) return [];
    const live = object.route.deploymentId;
    const named = (id: string) => id || "none";
    return desired === live ? [] : [{ field: "deployment", desired: named(desired), live: named(live) }];
  },
  stillExists: ({ route }) => route?.exists ?? false,
  isRollingOut: () => false,
};

function specOf({ spec }: ObjectView): ApplyRoute | undefined {
  return spec?.spec.case === "route" ? spec.spec.value : undefined;
}
